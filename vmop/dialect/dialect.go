package dialect

import (
	"errors"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/dialect/deckhouse"
	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/dialect/kubevirt"
	"github.com/vmop/sdk/vmop/spec"
)

// Machine is a machine that another system's manifest describes.
type Machine struct {
	// VirtualMachine is the machine in our terms, without defaults.
	VirtualMachine *spec.VirtualMachine
	// Object is where it was written, in the other system's terms.
	Object spec.Object
	// Notes say what of the manifest means something else here, or nothing:
	// each with its file, line and path. None is left out.
	Notes []spec.Problem
}

// Class is a class of machines that another system's manifest describes.
type Class struct {
	// VirtualMachineClass is the class in our terms.
	VirtualMachineClass *spec.VirtualMachineClass
	// Object is where it was written, in the other system's terms.
	Object spec.Object
	// Notes are as those of a [Machine].
	Notes []spec.Problem
}

// Translation is what the objects of files are in our terms.
type Translation struct {
	// Machines are the machines, in the order of the objects.
	Machines []Machine
	// Classes are the classes of machines, in the order of the objects.
	Classes []Class
	// LeftOut names the other objects of these systems: those that describe no
	// machine, and that no machine refers to.
	LeftOut []spec.Problem
}

// Translate translates every machine of another system, and every class of machines,
// among the objects of one or several files. Objects that machines refer to, such as instance types and
// virtual disks, are looked up among the same objects. Machines of this system
// and objects of groups that belong to neither are not looked at.
//
// The error is a [*spec.LoadError] with everything that keeps a machine from
// being one, such as a size that nothing says; the others are returned.
func Translate(objects []spec.Object) (Translation, error) {
	var out Translation
	var problems []spec.Problem
	for i := range objects {
		o := &objects[i]
		if group, _, _ := strings.Cut(o.APIVersion, "/"); o.Kind+"."+group == deckhouse.ClassKind {
			c, notes, err := deckhouse.TranslateClass(o)
			if err != nil {
				problems = append(problems, problem(o, err))
				continue
			}
			out.Classes = append(out.Classes, Class{VirtualMachineClass: c, Object: *o, Notes: notes})
			continue
		}
		translate, known := translator(o)
		if !known {
			continue
		}
		if translate == nil {
			out.LeftOut = append(out.LeftOut, o.Problem("", "describes no machine and is left out"))
			continue
		}
		vm, notes, err := translate(o, objects)
		if err != nil {
			problems = append(problems, problem(o, err))
			continue
		}
		out.Machines = append(out.Machines, Machine{VirtualMachine: vm, Object: *o, Notes: notes})
	}
	if len(problems) > 0 {
		return out, &spec.LoadError{Problems: problems}
	}
	return out, nil
}

// Kinds lists the kinds of machines that [Translate] translates, with their groups.
func Kinds() []string {
	return append(kubevirt.Kinds(), deckhouse.Kinds()...)
}

type translation func(o *spec.Object, all []spec.Object) (*spec.VirtualMachine, []spec.Problem, error)

// translator returns how an object becomes a machine. It is nil for a kind of
// these systems that does not; companions of machines are not known here.
func translator(o *spec.Object) (translate translation, known bool) {
	group, _, _ := strings.Cut(o.APIVersion, "/")
	switch {
	case group == kubevirt.Group && slices.Contains(kubevirt.Kinds(), o.Kind+"."+group):
		return kubevirt.Translate, true
	case group == deckhouse.Group && slices.Contains(deckhouse.Kinds(), o.Kind+"."+group):
		return deckhouse.Translate, true
	case strings.HasSuffix("."+group, "."+kubevirt.Group) && !kubevirt.Companion(o.Kind), group == deckhouse.Group && !deckhouse.Companion(o.Kind):
		return nil, true
	}
	return nil, false
}

func problem(o *spec.Object, err error) spec.Problem {
	var field *tree.FieldError
	if errors.As(err, &field) {
		return o.Problem(field.Path, field.Message)
	}
	return o.Problem("", err.Error())
}
