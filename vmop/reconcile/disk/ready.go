package disk

import (
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ready sets the status of a disk that has all that it needs.
func (d *decision) ready() {
	c := d.s.Claim
	if format := c.Annotations[names.AnnotationDiskFormat]; d.isFilled() && format != "" {
		d.next.Format = format
	}
	if c.Status.Phase != corev1.ClaimBound {
		if d.image != nil { // the importer has seen more than the caches
			d.wait(conditions.ReasonDiskProvisioning, "claim %s has no volume yet; see kubectl describe pvc %[1]s%[2]s", c.Name, d.in)
			return
		}
		d.say(spec.DiskWaitForFirstConsumer, metav1.ConditionFalse, conditions.ReasonDiskWaitForFirstConsumer,
			"claim %s has no volume yet: it gets one from its storage class, with some when the first machine uses the disk; see kubectl describe pvc %s", c.Name, c.Name)
		return
	}
	was := d.disk.Status.Phase
	d.say(spec.DiskReady, metav1.ConditionTrue, d.readyReason, "%s", d.readyText)
	if was != spec.DiskReady && was != spec.DiskResizing {
		d.plan.Events = append(d.plan.Events, reconcile.Event{Type: corev1.EventTypeNormal, Reason: d.readyReason, Action: "Provision", Note: d.readyText + "; the " + d.noun + " is in claim " + c.Name})
	}
}
