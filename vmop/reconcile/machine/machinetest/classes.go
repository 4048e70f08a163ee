package machinetest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var worldClasses = []string{"large", "small"}

func (w *world) changeClass() {
	name := worldClasses[w.choose("class", len(worldClasses))]
	key := "class/" + name
	class := get[*spec.VirtualMachineClass](w, key)
	if class != nil && w.choose("deleted", 4) == 0 {
		w.put(key, nil)
		w.note("class %s is deleted", name)
		return
	}
	if class == nil {
		class = spec.NewClass(name)
		class.CreationTimestamp = metav1.NewTime(w.now)
	}
	class.Generation++
	class.Annotations = map[string]string{names.AnnotationDefaultClass: []string{"true", "false"}[w.choose("default", 2)]}
	class.Spec = spec.VirtualMachineClassSpec{}
	switch w.choose("CPU", 3) {
	case 0:
		class.Spec.CPU = &spec.ClassCPU{Type: spec.ClassCPUModel, Model: "m" + name}
	case 1:
		class.Spec.CPU = &spec.ClassCPU{Type: spec.ClassCPUModel} // invalid
	}
	if w.choose("nodes", 2) == 0 {
		class.Spec.NodeSelector = &spec.ClassNodeSelector{MatchLabels: map[string]string{"for": name}}
	}
	switch w.choose("sizes", 3) {
	case 0:
		class.Spec.SizingPolicies = []spec.SizingPolicy{{Cores: spec.CoreRange{Min: 1, Max: 2}, DefaultCoreFraction: "20%"}}
	case 1:
		class.Spec.SizingPolicies = []spec.SizingPolicy{{Cores: spec.CoreRange{Min: 3, Max: 4}}}
	}
	w.put(key, class)
	text, _ := json.Marshal(class.Spec)
	w.note("class %s is %v %s", name, class.IsDefault(), text)
}

func (w *world) changeOfClassed() {
	vm := get[*spec.VirtualMachine](w, theVM)
	before := vm.DeepCopy()
	switch w.choose("change", 4) {
	case 0:
		vm.Spec.VirtualMachineClassName = append([]string{""}, worldClasses...)[w.choose("class", 3)]
	case 1:
		vm.Spec.VM.CurrentCPUs = new(int32(1 + w.choose("CPUs", 5)))
	case 2:
		vm.Spec.Disruptions = []*spec.Disruptions{nil, {RestartApprovalMode: spec.RestartAutomatic}}[w.choose("approval", 2)]
	case 3:
		vm.Spec.Pools = append(vm.Spec.Pools[:0:0], fmt.Sprint("p", w.choose("pool", 3)))
	}
	a, _ := json.Marshal(before.Spec)
	b, _ := json.Marshal(vm.Spec)
	if string(a) == string(b) {
		return
	}
	vm.Generation++
	w.put(theVM, vm)
	w.note("the machine is changed: class %q, %d CPUs, pools %v, %v", vm.Spec.VirtualMachineClassName, currentCPUs(vm), vm.Spec.Pools, vm.Spec.RestartsAutomatically())
}

func currentCPUs(vm *spec.VirtualMachine) int32 {
	if n := vm.Spec.VM.CurrentCPUs; n != nil {
		return *n
	}
	return 1
}

func classFor(vm *spec.VirtualMachine, all []spec.VirtualMachineClass) (class *spec.VirtualMachineClass, starts bool) {
	class, _ = spec.ClassOf(vm.Spec.VirtualMachineClassName, all)
	if class == nil {
		return nil, vm.Spec.VirtualMachineClassName == ""
	}
	own := vm.DeepCopy()
	spec.Default(own)
	class.Spec.Apply(&own.Spec)
	return class, len(spec.ValidateClass(class)) == 0 && len(class.Spec.CheckSize(&own.Spec)) == 0
}

func (w *world) checkClass(s *machine.Snapshot, p *reconcile.Plan) {
	if !w.classes {
		return
	}
	class, starts := classFor(s.VM, s.Classes)
	for _, a := range p.Actions {
		switch a := a.(type) {
		case reconcile.Create:
			pod, is := a.Object.(*corev1.Pod)
			if !is {
				continue
			}
			if !starts {
				w.violated("no machine is started without its class", "of %s in %+v", s.VM.Spec.VirtualMachineClassName, s.Classes)
			}
			if class != nil && class.Spec.NodeSelector != nil && pod.Spec.NodeSelector["for"] != class.Name {
				w.violated("a machine is started as its class says", "%v", pod.Spec.NodeSelector)
			}
		case reconcile.DeletePod:
			if s.Pod() == nil || s.Pod().UID != a.UID || s.Pod().Status.Phase != corev1.PodRunning || s.VM.DeletionTimestamp != nil || !s.VM.ShouldRun() {
				continue
			}
			// The only permitted reason is a change of the machine that may restart it.
			var then struct {
				Spec struct {
					VirtualMachineClassName string `json:"virtualMachineClassName"`
				} `json:"spec"`
			}
			_ = json.Unmarshal([]byte(s.Pod().Annotations[names.AnnotationStarted]), &then)
			if !s.VM.Spec.RestartsAutomatically() || then.Spec.VirtualMachineClassName == s.VM.Spec.VirtualMachineClassName {
				w.violated("no machine stops for its class", "it was started with %q, and names %q, of %+v", then.Spec.VirtualMachineClassName, s.VM.Spec.VirtualMachineClassName, s.Classes)
			}
		}
	}
}

func (w *world) checkClassSettled(vm *spec.VirtualMachine, pod *corev1.Pod) {
	all := w.classesOf(vm, get[*spec.VirtualMachineClass])
	class, starts := classFor(vm, all)
	ready := spec.FindCondition(vm.Status.Conditions, spec.ConditionVirtualMachineClassReady)
	size := spec.FindCondition(vm.Status.Conditions, spec.ConditionSizingPolicyMatched)
	switch none := class == nil && vm.Spec.VirtualMachineClassName == ""; {
	case (ready == nil) != none || (size == nil) != none:
		w.violated("what is wrong with a class is told", "%v, %v", ready, size)
	case none:
	case (ready.Status == "True" && size.Status == "True") != starts:
		w.violated("what is wrong with a class is told", "%v, %v", ready, size)
	}
	if (pod == nil) && starts {
		w.violated("what is wrong with a class passes when it is corrected", "%+v", vm.Status.Conditions)
	}
	if pod == nil || class == nil || !starts {
		return
	}
	waits := slices.ContainsFunc(vm.Status.RestartAwaitingChanges, func(c spec.AwaitingChange) bool {
		return c.Path == "spec.nodeSelector" || c.Path == "spec.nodeSelector.for" || c.Path == "spec.nodeSelector[for]"
	})
	want := ""
	if class.Spec.NodeSelector != nil {
		want = class.Name
	}
	if waits != (pod.Spec.NodeSelector["for"] != want) {
		w.violated("a change of a class is told", "the pod has %v, the class wants %q, and these wait: %+v", pod.Spec.NodeSelector, want, vm.Status.RestartAwaitingChanges)
	}
}
