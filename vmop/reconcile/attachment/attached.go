package attachment

import (
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// attached reports that the guest has the disk, and any problem of its exporter.
func (d *decision) attached(but string) {
	if d.a.Status.Phase != spec.AttachmentAttached {
		d.plan.Events = append(d.plan.Events, reconcile.Event{
			Type: corev1.EventTypeNormal, Reason: conditions.ReasonAttached, Action: "Attach", Note: "machine " + d.a.Spec.VirtualMachineName + " has the disk",
		})
	}
	d.next.Phase, d.next.VirtualMachineName = spec.AttachmentAttached, d.a.Spec.VirtualMachineName
	if r := d.report(); r != nil && r.Place >= 1 && r.Place <= MaxAttached {
		d.next.Place = r.Place
	}
	if but != "" {
		d.condition(conditions.Attached, metav1.ConditionTrue, conditions.ReasonAttached, "the guest has the disk, and waits for it: %s", but)
		return
	}
	if d.direct() {
		d.condition(conditions.Attached, metav1.ConditionTrue, conditions.ReasonAttached, "the guest has the disk, from the volume of its own pod")
		return
	}
	d.condition(conditions.Attached, metav1.ConditionTrue, conditions.ReasonAttached, "the guest has the disk")
}

func (d *decision) cannot(r *spec.MachineAttachment) {
	if d.a.Status.Phase != spec.AttachmentFailed {
		d.plan.Events = append(d.plan.Events, reconcile.Event{
			Type: corev1.EventTypeWarning, Reason: conditions.ReasonAttachmentFailed, Action: "Attach", Note: "machine " + d.a.Spec.VirtualMachineName + " cannot attach the disk" + because(r.Message),
		})
	}
	d.not(spec.AttachmentFailed, conditions.ReasonAttachmentFailed, "machine %s cannot attach it%s", d.a.Spec.VirtualMachineName, because(r.Message))
}
