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

// The pods of a machine are a set. What each of them is to the machine, its role, is said
// here and nowhere else, by what the pod is and not by what it is called: its owner, what
// the operator has noted on it, its claims. A name says one thing only, which is that the
// machine's next pod cannot have it.

// podRole is what a pod is to a machine.
type podRole int

const (
	// roleNone: it has nothing to do with it.
	roleNone podRole = iota
	// roleActive: it is the machine's, and the guest executes in it, will, or did so last.
	// There is at most one; of a machine that moves it is the source.
	roleActive
	// roleTarget: it is the machine's and has not ended, and another one is active. Nothing
	// makes such a pod yet. It becomes the active one when that is gone, and no guest is
	// started in yet another one before.
	roleTarget
	// roleLeftover: it is the machine's, has ended, and another one is active.
	roleLeftover
	// roleOrphaned: an operator has let the former machine of the name go without it, and
	// the machine may take it over.
	roleOrphaned
	// roleMade: it was made for the machine, and the garbage collector has taken the owner
	// from it. That counts for a machine that is being deleted.
	roleMade
	// roleForeign: it is somebody else's and has the name of the machine's next pod.
	roleForeign
	// roleSharing: it is somebody else's and may write to a claim of the machine.
	roleSharing
)

// roles are the roles of the pods for the machine, one for each.
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

// comesBefore reports whether of two pods of the machine the first is the active one. One
// that has not ended comes before one that has: its guest may execute. Of two of those it
// is the older one, because the younger was made beside a guest; and of two that have
// ended the younger one, which is the last run.
func comesBefore(a, b *corev1.Pod) bool {
	if finished(a) != finished(b) {
		return finished(b)
	}
	age := cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	return (age < 0) != finished(a)
}

// beside is the role of a pod of the machine that is not the active one.
func beside(pod *corev1.Pod) podRole {
	if finished(pod) {
		return roleLeftover
	}
	return roleTarget
}

// roleOfOther is the role of a pod that is not the machine's.
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

// Pod is the pod that the next steps of the machine are about: its active one, else the
// one that it may take over or has lost its owner, else what has the name of the next one.
// It is nil if there is none of them. Whoever observes needs no more of it than whether
// the machine has a pod.
func (s *Snapshot) Pod() *corev1.Pod {
	pod, _ := s.foremost()
	return pod
}

// PodWith is the pod of a machine that somebody has begun something with, known by its
// UID, as long as that pod has not ended; and else what [Snapshot.Pod] says of the pods, or
// the one with the name of the machine's next pod if the machine itself is not there. So
// nothing is taken from a guest because another pod has become the active one.
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

// foremost is [Snapshot.Pod] with its role.
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

// SharesDisks reports whether a pod may write to a claim that the machine uses or may come
// to use, see [UsedClaims]. Such a one belongs to the Pods of a [Snapshot] of the machine before a pod is
// made. One with the name of the machine's next pod does not keep that from being made,
// and need not be looked for: the API server lets nobody make a second one.
func SharesDisks(vm *spec.VirtualMachine, attachments []spec.VirtualMachineBlockDeviceAttachment, pod *corev1.Pod) bool {
	return pod.Name != objects.PodName(vm.Name) && usesClaimOf(vm, attachments, pod)
}

// usesClaimOf reports whether a pod has not ended and has a claim that the machine uses or
// may come to use.
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

// isOrphan reports whether an operator has let a machine of a name go without the pod,
// which nobody has taken since.
func isOrphan(pod *corev1.Pod, vm string) bool {
	_, of, ok := strings.Cut(pod.Annotations[names.AnnotationOrphaned], " ")
	l := pod.Labels
	return ok && of == string(pod.UID) && len(pod.OwnerReferences) == 0 && watched(pod) && l[names.LabelInstance] == vm
}

// watched reports whether the end of a pod is going to be noticed: of all pods only
// those with the labels of a runner are watched.
func watched(pod *corev1.Pod) bool {
	l := pod.Labels
	return l[names.LabelName] == names.AppName && l[names.LabelManagedBy] == names.ManagedBy && l[names.LabelComponent] == names.ComponentRunner
}

// finished reports whether nothing of a pod runs or will run. The phase is the
// kubelet's word for it; without it the volumes may still be in use.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// UsedClaims are the names of all claims that a machine uses or may come to use, with those
// of attachments that name it which its next pod may have.
func UsedClaims(vm *spec.VirtualMachine, attachments []spec.VirtualMachineBlockDeviceAttachment) []string {
	out := objects.ClaimNames(vm)
	for i := range attachments {
		if a := &attachments[i]; attachment.MayMount(a) {
			out = append(out, a.Spec.BlockDeviceRef.ClaimName())
		}
	}
	return out
}
