package machinetest

import (
	"fmt"
	"maps"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func (w *world) relabel() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return
	}
	vm.Labels = []map[string]string{nil, {"app": "a"}, {"app": "b", "tier": "x"}, {"app": "c", names.LabelInstance: "other", names.LabelComponent: "none"}}[w.choose("labels", 4)]
	if vm.Annotations == nil {
		vm.Annotations = map[string]string{}
	}
	if delete(vm.Annotations, "note"); w.choose("note", 2) == 1 {
		vm.Annotations["note"] = fmt.Sprint(w.serial)
	}
	w.put(theVM, vm)
	w.note("the machine has the labels %v", vm.Labels)
}

// checkPassedOn verifies that the pod has the labels and annotations of its machine, and its own.
func (w *world) checkPassedOn(vm *spec.VirtualMachine, pod *corev1.Pod) {
	want := objects.InstanceLabels(vm.Name)
	want[names.LabelComponent] = names.ComponentRunner
	for k, v := range vm.Labels {
		if _, own := want[k]; !own {
			want[k] = v
		}
	}
	if !maps.Equal(want, pod.Labels) || vm.Annotations["note"] != pod.Annotations["note"] {
		w.violated("what a machine is labelled with its pod is, too", "%v %q instead of %v %q", pod.Labels, pod.Annotations["note"], want, vm.Annotations["note"])
	}
}
