package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A class is part of a machine's specification and is applied before anything else is decided. A
// running machine keeps what it was started with, as noted on its pod: neither a change nor the
// deletion of a class stops it.

// findClass applies the machine's class. Without a usable class a running machine stays as it was
// started, and no other is started.
func (d *decision) findClass() {
	d.manifest = d.vm
	name := d.vm.Spec.VirtualMachineClassName
	had := d.classThen()
	class, others := spec.ClassOf(name, d.s.Classes)
	if class == nil && name == "" {
		return
	}
	problem := func(reason, object, format string, args ...any) {
		d.unclassed = true
		if d.class.setProblem(reason, object, format, args...) {
			d.class.further = "; the machine is not started without its class"
			if d.pod.exists() {
				d.class.further = "; the machine goes on as it was started, and is not started again without its class"
			}
		}
		d.size = finding{status: metav1.ConditionUnknown, reason: reason, message: "the class of the machine is not known"}
		if had != nil {
			had.applyTo(&d.ownSpec().Spec)
		}
	}
	switch {
	case class == nil && d.s.ClassProblem != "":
		problem(spec.ReasonVirtualMachineClassNotReady, named(spec.KindClass, name), "VirtualMachineClass %s: %s", name, d.s.ClassProblem)
		return
	case class == nil:
		problem(spec.ReasonVirtualMachineClassNotFound, named(spec.KindClass, name), "there is no VirtualMachineClass %s; create it, or name another one in spec.virtualMachineClassName", name)
		return
	}
	object := named(spec.KindClass, class.Name)
	if errs := spec.ValidateClass(class); len(errs) > 0 {
		problem(spec.ReasonVirtualMachineClassNotReady, object, "VirtualMachineClass %s is not valid: %s; correct it", class.Name, few(errs))
		return
	}
	fraction := d.vm.Spec.CoreFraction
	overruled := class.Spec.Apply(&d.ownSpec().Spec)
	d.classNow = &startedClass{Name: class.Name, UID: class.UID, Generation: class.Generation}
	class.Spec.DeepCopyInto(&d.classNow.Spec)
	d.classNow.Spec.SizingPolicies = nil
	if fraction == "" {
		d.classNow.CoreFraction = d.vm.Spec.CoreFraction
	}
	message := "the class of the machine is " + class.Name
	if name == "" {
		message += ", the default"
	}
	if len(others) > 0 {
		message += fmt.Sprintf("; %s marked as the default, too, and the newest counts", enumerate(others))
	}
	if len(overruled) > 0 {
		message += "; " + strings.Join(overruled, "; ")
	}
	d.class.setTrue(spec.ReasonVirtualMachineClassReady, message)
	if errs := class.Spec.CheckSize(&d.vm.Spec); len(errs) > 0 {
		d.oversized = true
		goes := "the machine is not started"
		if d.pod.exists() {
			goes = "the machine goes on with what its guest has, and is not started again"
		}
		if d.size.setProblem(spec.ReasonSizingPolicyNotMatched, object, "VirtualMachineClass %s does not allow this size: %s; change it, or the class", class.Name, few(errs)) {
			d.size.further = "; " + goes + " until then"
		}
		return
	}
	d.size.setTrue(spec.ReasonSizingPolicyMatched, "VirtualMachineClass "+class.Name+" allows the size of the machine")
}

func enumerate(classes []string) string {
	if len(classes) == 1 {
		return "VirtualMachineClass " + classes[0] + " is"
	}
	return "VirtualMachineClasses " + strings.Join(classes, ", ") + " are"
}

// ownSpec makes d.vm a copy of the manifest that may be changed.
func (d *decision) ownSpec() *spec.VirtualMachine {
	if d.vm == d.manifest {
		vm := *d.manifest
		manifest.CopySpec(&d.manifest.Spec, &vm.Spec)
		d.vm = &vm
	}
	return d.vm
}

func (d *decision) unfit() bool { return d.unclassed || d.oversized }

func (d *decision) unfitness() finding {
	f := d.size
	if d.unclassed {
		f = d.class
	}
	return f
}

// classThen returns the class that the machine's pod was made with, nil if there is none. Pods
// without one, the usual case, are recognized without decoding the long annotation.
func (d *decision) classThen() *startedClass {
	if !d.pod.exists() {
		return nil
	}
	text := d.pod.pod.Annotations[names.AnnotationStarted]
	rest, ok := strings.CutPrefix(text, `{"generation":`)
	if _, after, found := strings.Cut(rest, ","); !ok || !found || !strings.HasPrefix(after, `"class":`) {
		return nil
	}
	var then startedManifest
	if json.Unmarshal([]byte(text), &then) != nil {
		return nil
	}
	d.then = then.Class
	return then.Class
}

// asStarted reports, without decoding the annotation, whether the pod was made for the machine as
// it is.
func (d *decision) asStarted(text string) bool {
	generation := `{"generation":` + strconv.FormatInt(d.s.VM.Generation, 10) + ","
	return strings.HasPrefix(text, generation) && d.sameClass()
}

// sameClass reports whether the class is that of the pod's start. An unusable class counts as the
// same: the noted one was applied.
func (d *decision) sameClass() bool {
	then, now := d.then, d.classNow
	if then == nil || now == nil {
		return d.unclassed || then == now
	}
	return then.Name == now.Name && then.UID == now.UID && then.Generation == now.Generation
}

// changedItself reports whether changes of the manifest itself, beside those of its class, wait
// for a restart: only these have been approved by its author.
func (d *decision) changedItself(then *startedManifest) bool {
	if d.sameClass() {
		return true // there are no others
	}
	own := *d.manifest
	d.manifest.Spec.DeepCopyInto(&own.Spec)
	if d.then != nil {
		d.then.applyTo(&own.Spec)
	}
	old := &spec.VirtualMachine{Spec: *then.Spec}
	old.Name, own.Spec = own.Name, *concealed(&own.Spec)
	if slices.ContainsFunc(d.hot, func(disk machineconfig.Disk) bool { return bootField(&disk) != "" }) {
		return true
	}
	return slices.ContainsFunc(changes.Between(old, &own, changes.Options{Pod: d.inPod()}), func(c changes.Change) bool {
		// A disk that could be hotplugged but for the class waits as its author's change.
		return c.Applied == changes.AppliedRestart ||
			c.IsDisk() && c.Operation == spec.OperationAdd && !slices.ContainsFunc(d.hot, func(disk machineconfig.Disk) bool { return disk.Field() == c.Path })
	})
}

// wantedAmounts returns what the guest should have. A size that the class does not allow gets no
// more than it has now.
func (d *decision) wantedAmounts() objects.Amounts {
	want := objects.GuestAmounts(d.vm)
	if !d.oversized || !d.pod.exists() {
		return want
	}
	if had, known := d.granted(); known {
		want.CPUs, want.RAM = min(want.CPUs, had.CPUs), min(want.RAM, had.RAM)
	}
	return want
}
