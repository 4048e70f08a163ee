package attachment

import (
	"cmp"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// MaxAttached is how many disks can be attached to a running machine: its places for plugged
// devices.
const MaxAttached = limits.MaxAttached

// overdue is how long after its grace period a starting machine waits for an exporter. Then it is
// started without the disk, which is attached later.
const overdue = 30 * time.Second

// Start is what the next pod of a machine depends on for its attachments.
type Start struct {
	// Machine is the machine, with its defaults.
	Machine *spec.VirtualMachine
	// Attachments are those that name the machine.
	Attachments []spec.VirtualMachineBlockDeviceAttachment
	// Claims are their existing volume claims, among others.
	Claims []corev1.PersistentVolumeClaim
	// Pods are further pods that have one of the claims, among others.
	Pods []corev1.Pod
	Now  time.Time
}

// MayMount reports whether the next pod of its machine may have the volume of an attachment: of
// one with its finalizer, which a guest of the machine has had. So nothing is mounted that has
// never been on the machine's node.
func MayMount(a *spec.VirtualMachineBlockDeviceAttachment) bool {
	return a != nil && a.UID != "" && a.DeletionTimestamp == nil && slices.Contains(a.Finalizers, names.FinalizerAttachment) &&
		a.Status.Place >= 1 && a.Status.Place <= MaxAttached && len(spec.ValidateAttachment(a)) == 0
}

// Mounts returns the volumes that the next pod of a machine mounts for its attachments: an
// attached disk is present when the guest boots, without an exporter in between. A claim has one
// writer: what any other pod uses is not mounted. The machine waits for the attachment's own
// exporter, which is about to end: that is exporter, or "", and until is when the wait ends.
func Mounts(s Start) (all []objects.Attached, exporter string, until time.Time) {
	if s.Machine == nil {
		return nil, "", time.Time{}
	}
	own := slices.Concat(objects.ClaimNames(s.Machine), objects.SharedClaims(s.Machine))
	list := slices.Clone(s.Attachments)
	slices.SortStableFunc(list, func(a, b spec.VirtualMachineBlockDeviceAttachment) int {
		return cmp.Or(cmp.Compare(rank(&b), rank(&a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range list {
		a := &list[i]
		claim := a.Spec.BlockDeviceRef.ClaimName()
		pvc := slices.IndexFunc(s.Claims, func(c corev1.PersistentVolumeClaim) bool { return c.Name == claim })
		if !MayMount(a) || a.Spec.VirtualMachineName != s.Machine.Name || len(all) == MaxAttached || slices.Contains(own, claim) || pvc < 0 ||
			slices.ContainsFunc(all, func(m objects.Attached) bool { return m.Claim == claim }) {
			continue
		}
		c := &s.Claims[pvc]
		if image, _ := objects.ImageOf(c); image != "" || c.DeletionTimestamp != nil || c.Status.Phase != corev1.ClaimBound {
			continue
		}
		waits, used := s.users(a)
		if used || waits != nil && waits.DeletionTimestamp != nil && !s.Now.Before(waits.DeletionTimestamp.Add(overdue)) {
			continue
		}
		if waits != nil && exporter == "" {
			exporter = waits.Name
			if waits.DeletionTimestamp != nil {
				until = waits.DeletionTimestamp.Add(overdue)
			}
		}
		all = append(all, objects.Attached{Claim: claim, Block: c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock, For: a.UID})
	}
	return all, exporter, until
}

func (s *Start) users(a *spec.VirtualMachineBlockDeviceAttachment) (exporter *corev1.Pod, others bool) {
	for i := range s.Pods {
		p := &s.Pods[i]
		switch {
		case finished(p) || !slices.Contains(objects.PodClaims(p), a.Spec.BlockDeviceRef.ClaimName()):
		case p.Name == objects.ExportPod(a.Name) && p.Annotations[names.AnnotationMadeFor] == string(a.UID):
			exporter = p
		default:
			others = true
		}
	}
	return exporter, others
}

// The ranks of attachments of a disk: the highest has it.
const (
	rankNone = iota
	// rankConnected has a connection with an exporter, or is about to.
	rankConnected
	// rankMounted is for a machine whose pod has the volume, and has not reported it yet.
	rankMounted
	// rankDirect has it from the volume of its machine's pod.
	rankDirect
)

func rank(a *spec.VirtualMachineBlockDeviceAttachment) int {
	switch c := a.Status.Connection; {
	case c == nil:
		return rankNone
	case c.Direct && !c.Detach:
		return rankDirect
	}
	return rankConnected
}
