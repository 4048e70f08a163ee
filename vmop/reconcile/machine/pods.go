package machine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/attachment"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The role of each of a machine's pods is decided here and nowhere else, by its owner, the
// operator's annotations and its claims. Its name means only that the machine's next pod cannot
// have it.

type podRole int

const (
	// roleNone: unrelated.
	roleNone podRole = iota
	// roleActive: the machine's pod in which the guest executes, will, or did last. There is at
	// most one; during a migration it is the source.
	roleActive
	// roleTarget: the machine's, not ended, beside an active one. Nothing creates such a pod yet.
	// It becomes active when the active one is deleted, and no guest is started in another pod
	// before.
	roleTarget
	// roleLeftover: the machine's, ended, beside an active one.
	roleLeftover
	// roleOrphaned: the former machine of the name was released without it, and the machine may
	// take it over.
	roleOrphaned
	// roleMade: made for the machine, and the garbage collector has removed the owner. It counts
	// for a machine that is being deleted.
	roleMade
	// roleForeign: another owner's, with the name of the machine's next pod.
	roleForeign
	// roleSharing: another owner's, and may write to a claim of the machine.
	roleSharing
)

func (s *Snapshot) roles() []podRole {
	vm, pods := s.VM, s.Pods
	out := make([]podRole, len(pods))
	active := -1
	for i := range pods {
		switch pod := &pods[i]; {
		case !ownedBy(pod, vm):
			out[i] = s.roleOfOther(pod)
		case active < 0:
			active = i
		case comesBefore(&pods[active], pod):
			out[i] = beside(pod)
		default:
			out[active], active = beside(&pods[active]), i
		}
	}
	if active >= 0 {
		out[active] = roleActive
	}
	return out
}

// comesBefore reports whether the first of two pods of the machine is the active one. One that
// has not ended comes first: its guest may execute. Of two such pods it is the older, because the
// younger was made beside a guest; of two that have ended the younger, which is the last run.
func comesBefore(a, b *corev1.Pod) bool {
	if finished(a) != finished(b) {
		return finished(b)
	}
	age := cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	return (age < 0) != finished(a)
}

func beside(pod *corev1.Pod) podRole {
	if finished(pod) {
		return roleLeftover
	}
	return roleTarget
}

func (s *Snapshot) roleOfOther(pod *corev1.Pod) podRole {
	vm := s.VM
	switch {
	case vm.DeletionTimestamp == nil && vm.UID != "" && pod.DeletionTimestamp == nil && isOrphan(pod, vm.Name):
		return roleOrphaned
	case vm.DeletionTimestamp != nil && vm.UID != "" && len(pod.OwnerReferences) == 0 && watched(pod) && pod.Annotations[names.AnnotationMadeFor] == string(vm.UID):
		return roleMade
	case pod.Name == objects.PodName(vm.Name):
		return roleForeign
	case usesClaimOf(vm, s.Attachments, pod):
		return roleSharing
	}
	return roleNone
}

// Pod returns the pod that the next steps of the machine are about: its active one, else the one
// that it may take over or that has lost its owner, else the one with the name of the next pod;
// nil if there is none. Observers need it only to know whether the machine has a pod.
func (s *Snapshot) Pod() *corev1.Pod {
	pod, _ := s.foremost()
	return pod
}

// PodWith returns the pod with the UID, known from an action already begun, as long as it has not
// ended; else [Snapshot.Pod] of the pods, or the one with the name of the machine's next pod if
// vm is nil. So nothing is taken from a guest because another pod has become active.
func PodWith(uid types.UID, name string, vm *spec.VirtualMachine, pods []corev1.Pod) *corev1.Pod {
	for i := range pods {
		if pod := &pods[i]; uid != "" && pod.UID == uid && !finished(pod) {
			return pod
		}
	}
	if vm != nil {
		s := Snapshot{VM: vm, Pods: pods}
		return s.Pod()
	}
	for i := range pods {
		if pod := &pods[i]; pod.Name == objects.PodName(name) {
			return pod
		}
	}
	return nil
}

func (s *Snapshot) foremost() (*corev1.Pod, podRole) {
	if s.VM == nil {
		return nil, roleNone
	}
	roles := s.roles()
	for _, role := range [...]podRole{roleActive, roleOrphaned, roleMade, roleForeign} {
		if i := slices.Index(roles, role); i >= 0 {
			return &s.Pods[i], role
		}
	}
	return nil, roleNone
}

// SharesDisks reports whether a pod may write to a claim that the machine uses or may come to
// use, see [UsedClaims]. Such pods belong to the Pods of a [Snapshot] before a pod is created.
// One with the name of the machine's next pod need not be searched for: the API server does not
// create a second one.
func SharesDisks(vm *spec.VirtualMachine, attachments []spec.VirtualMachineBlockDeviceAttachment, pod *corev1.Pod) bool {
	return pod.Name != objects.PodName(vm.Name) && usesClaimOf(vm, attachments, pod)
}

func usesClaimOf(vm *spec.VirtualMachine, attachments []spec.VirtualMachineBlockDeviceAttachment, pod *corev1.Pod) bool {
	if finished(pod) {
		return false
	}
	claims := UsedClaims(vm, attachments)
	return slices.ContainsFunc(objects.PodClaims(pod), func(c string) bool { return slices.Contains(claims, c) })
}

func ownedBy(o metav1.Object, vm *spec.VirtualMachine) bool {
	for _, r := range o.GetOwnerReferences() {
		if r.UID == vm.UID {
			return true
		}
	}
	return false
}

// isOrphan reports whether a machine of a name was released without the pod, which has not been
// taken over since.
func isOrphan(pod *corev1.Pod, vm string) bool {
	_, of, ok := strings.Cut(pod.Annotations[names.AnnotationOrphaned], " ")
	l := pod.Labels
	return ok && of == string(pod.UID) && len(pod.OwnerReferences) == 0 && watched(pod) && l[names.LabelInstance] == vm
}

// watched reports whether the end of a pod will be observed: only pods with the labels of a
// runner are watched.
func watched(pod *corev1.Pod) bool {
	l := pod.Labels
	return l[names.LabelName] == names.AppName && l[names.LabelManagedBy] == names.ManagedBy && l[names.LabelComponent] == names.ComponentRunner
}

// finished reports whether nothing of a pod runs or will run. Only the phase, which the kubelet
// sets, says so; without it the volumes may still be in use.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// UsedClaims returns the names of all claims that a machine uses or may come to use, including
// those of attachments that its next pod may mount.
func UsedClaims(vm *spec.VirtualMachine, attachments []spec.VirtualMachineBlockDeviceAttachment) []string {
	out := objects.ClaimNames(vm)
	for i := range attachments {
		if a := &attachments[i]; attachment.MayMount(a) {
			out = append(out, a.Spec.BlockDeviceRef.ClaimName())
		}
	}
	return out
}
