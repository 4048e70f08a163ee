package objects

import (
	"cmp"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodOf is the name of the pod in which a machine's guest executes, or will: of the one
// that its status has as active, else of the one that it gets ([PodName]). It is for who
// has the machine only: who sees its pods, as the operator does, goes by what they are.
func PodOf(vm *spec.VirtualMachine) string {
	for i := range vm.Status.VirtualMachinePods {
		if p := &vm.Status.VirtualMachinePods[i]; p.Active {
			return p.Name
		}
	}
	return PodName(vm.Name)
}

// PodsOf are the names of the pods that a machine has by its status, and of the one that
// [PodOf] says, which is the first.
func PodsOf(vm *spec.VirtualMachine) []string {
	out := []string{PodOf(vm)}
	for i := range vm.Status.VirtualMachinePods {
		if name := vm.Status.VirtualMachinePods[i].Name; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// PodWithUID is the name of the pod that has a UID by a machine's status, else what [PodOf]
// says: it is where to look for that pod.
func PodWithUID(vm *spec.VirtualMachine, uid types.UID) string {
	for i := range vm.Status.VirtualMachinePods {
		if p := &vm.Status.VirtualMachinePods[i]; p.UID == uid {
			return p.Name
		}
	}
	return PodOf(vm)
}

// MachineOf is the name of the machine that a pod says it is of: by its label, and without
// one by its own name. Whether it really is one of that machine its owner says.
func MachineOf(pod *corev1.Pod) string { return cmp.Or(pod.Labels[names.LabelInstance], pod.Name) }

// MayReport reports whether the runner in a pod may write the runner's part of a machine's
// status: in the pod that is the active one there; and in one that the status does not
// have yet, if it has the machine's name and no other is active. The latter is so of each
// new pod of a machine that does not move, and of all pods while the status is one from
// before it had any. In a pod that is there and not active, which is the target of a move
// or a leftover, no runner may.
//
// Of several pods at most one may, as long as at most one is active. The admission policy
// vmop-runner says the same in its own language, and a test asks the API server whether
// it does.
func MayReport(vm *spec.VirtualMachine, pod string, uid types.UID) bool {
	other := false
	for i := range vm.Status.VirtualMachinePods {
		switch p := &vm.Status.VirtualMachinePods[i]; {
		case p.UID == uid:
			return p.Active
		case p.Active && p.Name != pod:
			other = true
		}
	}
	return pod == vm.Name && !other
}
