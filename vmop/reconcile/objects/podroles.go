package objects

import (
	"cmp"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodOf returns the name of the pod in which a machine's guest executes, or will: the active one
// of its status, else that of the next pod ([PodName]). It is for callers that have only the
// machine: those that see its pods, such as the operator, use the pods' properties.
func PodOf(vm *spec.VirtualMachine) string {
	for i := range vm.Status.VirtualMachinePods {
		if p := &vm.Status.VirtualMachinePods[i]; p.Active {
			return p.Name
		}
	}
	return PodName(vm.Name)
}

// PodsOf returns the names of the pods that a machine has by its status, after that of [PodOf].
func PodsOf(vm *spec.VirtualMachine) []string {
	out := []string{PodOf(vm)}
	for i := range vm.Status.VirtualMachinePods {
		if name := vm.Status.VirtualMachinePods[i].Name; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// PodWithUID returns the name of the pod that has a UID by a machine's status, else that of
// [PodOf].
func PodWithUID(vm *spec.VirtualMachine, uid types.UID) string {
	for i := range vm.Status.VirtualMachinePods {
		if p := &vm.Status.VirtualMachinePods[i]; p.UID == uid {
			return p.Name
		}
	}
	return PodOf(vm)
}

// MachineOf returns the name of the machine that a pod claims to be of: its label's, or without
// one the pod's own name. Only its owner proves it.
func MachineOf(pod *corev1.Pod) string { return cmp.Or(pod.Labels[names.LabelInstance], pod.Name) }

// MayReport reports whether the runner in a pod may write the runner's part of a machine's
// status: in the pod that is active there, and in one that the status does not have yet, if it
// has the machine's name and no other is active. The latter holds for each new pod of a machine
// that does not migrate, and for all pods while the status is one from before it listed any. In a
// pod that is listed and not active, which is the target of a migration or a leftover, no runner
// may.
//
// Of several pods at most one may, as long as at most one is active. The admission policy
// vmop-runner has the same rule, and a test compares the two in an API server.
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
