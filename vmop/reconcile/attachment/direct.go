package attachment

import (
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// mounted returns the disk's volume in the machine's pod; nil if the pod does not have it, or has
// it as one of the manifest's.
func (d *decision) mounted() *objects.Attached {
	p := d.s.Pod
	if p == nil || finished(p) {
		return nil
	}
	for _, m := range objects.AttachedBy(p) {
		if m.Claim == d.claim() {
			return &m
		}
	}
	return nil
}

// release has the guest release a disk whose volume its pod has. It is released when the runner
// has nothing of it open; the volume stays with the pod until that ends.
func (d *decision) release() string {
	c, r := d.a.Status.Connection, d.report()
	if !c.Detach {
		next := *c
		next.Detach = true
		d.next.Connection = &next
	}
	switch {
	case r == nil:
		return "machine " + d.a.Spec.VirtualMachineName + " is told to release the disk"
	case !c.Detach || r.Phase != reportDetached:
		return "machine " + d.a.Spec.VirtualMachineName + " has the disk yet" + because(r.Message)
	}
	return ""
}

// regain handles a disk that was taken from a guest whose pod has its volume, and may be
// returned.
func (d *decision) regain(r *refusal) {
	waits := d.release()
	switch {
	case waits != "":
		d.not(spec.AttachmentPending, conditions.ReasonNotAttached, "%s", waits)
	case r != nil:
		d.not(r.phase, r.reason, "%s", r.message)
	default:
		d.connect()
	}
}

func (d *decision) connect() {
	d.next.Connection = &spec.AttachmentConnection{PodUID: d.s.Pod.UID, Direct: true}
	d.not(spec.AttachmentInProgress, conditions.ReasonAttachmentRequestSent, "machine %s is told: its pod has the volume", d.a.Spec.VirtualMachineName)
}

func (d *decision) directly() {
	r, machine := d.report(), d.a.Spec.VirtualMachineName
	switch {
	case r == nil:
		d.not(spec.AttachmentInProgress, conditions.ReasonAttachmentRequestSent, "machine %s is told: its pod has the volume", machine)
	case r.Phase == reportAttached:
		d.attached("")
	case r.Phase == reportFailed:
		d.cannot(r)
	default:
		d.not(spec.AttachmentInProgress, conditions.ReasonAttachmentRequestSent, "machine %s attaches it%s", machine, because(r.Message))
	}
}
