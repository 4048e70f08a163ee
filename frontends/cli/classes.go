package main

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

func classesAmong(objects []spec.Object) []spec.VirtualMachineClass {
	var out []spec.VirtualMachineClass
	for i := range objects {
		if c, is := objects[i].Typed.(*spec.VirtualMachineClass); is {
			out = append(out, *c)
		}
	}
	return out
}

// withoutClass removes the class of a machine of another system unless the class is among the
// files: it cannot be one of ours.
func (p *program) withoutClass(o *spec.Object) {
	if !foreign(o) || o.VirtualMachine.Spec.VirtualMachineClassName == "" {
		return
	}
	p.report(asFindings(output.SeverityNote, o.Problem("spec.virtualMachineClassName", "is not there, and counts for nothing")))
	o.VirtualMachine.Spec.VirtualMachineClassName = ""
	if text, err := spec.Marshal(o.VirtualMachine); err == nil { // it was marshaled before
		o.Raw = text
	}
}

// inline replaces the classes of machines by their content if the classes are among the files, so
// that a stored machine is complete and nothing else has to know of classes. The problems are sizes
// that a class does not allow.
func inline(objects []spec.Object, classes []spec.VirtualMachineClass) []finding {
	var said []finding
	for i := range objects {
		o := &objects[i]
		vm := o.VirtualMachine
		if vm == nil {
			continue
		}
		const field = "spec.virtualMachineClassName"
		class, others := spec.ClassOf(vm.Spec.VirtualMachineClassName, classes)
		if class == nil {
			continue
		}
		own := vm.DeepCopy()
		spec.Default(own)
		overruled := class.Spec.Apply(&own.Spec)
		if errs := class.Spec.CheckSize(&own.Spec); len(errs) > 0 {
			for _, found := range o.Problems(errs) {
				found.Message += " (VirtualMachineClass " + class.Name + ")"
				said = append(said, finding{found, output.SeverityError})
			}
		}
		message := "is " + class.Name + ", which is applied"
		if vm.Spec.VirtualMachineClassName == "" {
			message = "is " + class.Name + ", the default, which is applied"
		}
		if len(others) > 0 {
			message += fmt.Sprintf("; %s marked as the default, too: a cluster takes the newest, here it is the first by name", strings.Join(others, ", "))
		}
		for _, text := range overruled {
			message += "; " + text
		}
		said = append(said, finding{o.Problem(field, message), output.SeverityNote})
		own.Spec.VirtualMachineClassName, own.Status = "", vm.Status
		if text, err := spec.Marshal(own); err != nil {
			said = append(said, finding{o.Problem("", err.Error()), output.SeverityError})
		} else {
			o.Raw = text
		}
		o.Typed, o.VirtualMachine = own, own
	}
	return said
}

func foreign(o *spec.Object) bool {
	return o.Typed != nil && o.APIVersion != spec.GroupVersion().String()
}
