package disk

import (
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d *decision) size() {
	c := d.s.Claim
	if d.image != nil {
		return
	}
	if c == nil || d.next.Target == nil || c.UID != d.next.Target.PersistentVolumeClaimUID || !d.mine(c) {
		d.notResized()
		return
	}
	has, there := c.Status.Capacity[corev1.ResourceStorage]
	if there && c.Status.Phase == corev1.ClaimBound {
		// An equal quantity in another notation is no reason to write.
		if d.next.Capacity == nil || d.next.Capacity.Cmp(has) != 0 {
			d.next.Capacity = new(has.DeepCopy())
		}
	}
	if c.DeletionTimestamp != nil || !d.next.Phase.Usable() {
		d.notResized()
		return
	}
	want, asked := d.disk.Spec.PersistentVolumeClaim.Size, c.Spec.Resources.Requests[corev1.ResourceStorage]
	switch order := spec.CompareQuantities(want, asked); {
	case order < 0:
		if d.behind() != nil || there && spec.CompareQuantities(has, want) < 0 {
			d.resizing()
		}
		d.condition(conditions.DiskResized, metav1.ConditionFalse, conditions.ReasonShrinkRefused,
			"the disk asks for %s, but claim %s has asked for %s already, and disks do not shrink; ask for %[3]s again", want.String(), c.Name, asked.String())
		return
	case order > 0 && c.Status.Phase == corev1.ClaimBound:
		// Kubernetes grows only bound claims.
		u := reconcile.UpdateClaim{Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion, Storage: &want}
		if f := reconcile.Refused(d.s.Failures, u.Target(), d.s.Now); f != nil {
			d.plan.WakeAt(f.RetryAt())
			d.condition(conditions.DiskResized, metav1.ConditionFalse, conditions.ReasonWriteRefused, "claim %s does not grow to %s: %s", c.Name, want.String(), strings.TrimSpace(f.Message))
			return
		}
		d.plan.Actions = append(d.plan.Actions, u)
		fallthrough
	case there && spec.CompareQuantities(has, want) < 0 && c.Status.Phase == corev1.ClaimBound:
		d.resizing()
		d.condition(conditions.DiskResized, metav1.ConditionFalse, conditions.ReasonDiskResizing,
			"the volume grows from %s to %s, with some storage classes when a pod uses it next; see kubectl describe pvc %s", has.String(), want.String(), c.Name)
		return
	case c.Status.Phase != corev1.ClaimBound:
		return
	}
	if g := d.behind(); g != nil {
		d.resizing()
		d.condition(conditions.DiskResized, metav1.ConditionFalse, conditions.ReasonDiskResizing,
			"the volume has %s, and the guest of machine %s has %s of it so far%s", has.String(), g.Machine, g.Size.String(), also(g.Message))
		return
	}
	d.condition(conditions.DiskResized, metav1.ConditionTrue, conditions.ReasonDiskResized, "the volume has what the disk asks for")
}

func (d *decision) resizing() {
	if d.next.Phase == spec.DiskReady {
		d.next.Phase = spec.DiskResizing
	}
}

// behind returns a guest that has less of the disk than it should; nil if there is none. The
// report of a machine without a pod with the disk is of an earlier run.
func (d *decision) behind() *Guest {
	running := unfinished(d.s.Users)
	for i := range d.s.Guests {
		g := &d.s.Guests[i]
		if slices.Contains(running, g.Machine) && spec.CompareQuantities(g.Size, d.disk.Spec.PersistentVolumeClaim.Size) < 0 {
			return g
		}
	}
	return nil
}

func also(message string) string {
	if message == "" {
		return ""
	}
	return ": " + spec.BoundedMessage(message)
}

// notResized withdraws that a disk has grown that no longer exists.
func (d *decision) notResized() {
	if spec.ConditionIsTrue(d.next.Conditions, conditions.DiskResized) {
		d.condition(conditions.DiskResized, metav1.ConditionFalse, conditions.ReasonDiskResizing, "the disk is not there: its condition Ready says why")
	}
}
