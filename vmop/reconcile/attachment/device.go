package attachment

import (
	"cmp"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func (d *decision) device() *refusal {
	wait := func(format string, args ...any) *refusal {
		return no(spec.AttachmentPending, conditions.ReasonNotAttached, format, args...)
	}
	ref, c := &d.a.Spec.BlockDeviceRef, d.s.Claim
	if ref.Kind == spec.AttachedDisk {
		switch disk := d.s.Disk; {
		case disk == nil:
			return wait("there is no disk %s (kubectl get vd)", ref.Name)
		case disk.DeletionTimestamp != nil:
			return wait("disk %s is being deleted", ref.Name)
		case !disk.Status.Phase.Usable():
			return wait("disk %s is %s (kubectl describe vd %[1]s)", ref.Name, cmp.Or(disk.Status.Phase, spec.DiskPending))
		}
	}
	if c == nil {
		return wait("there is no claim %s", d.claim())
	}
	switch imageKind, image := objects.ImageOf(c); {
	case c.DeletionTimestamp != nil:
		return wait("claim %s is being deleted", c.Name)
	case imageKind != "":
		return no(spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "claim %s is that of %s %s, which no machine writes to: make a VirtualDisk of it, and attach that", c.Name, imageKind, image)
	case c.Status.Phase == corev1.ClaimLost:
		return wait("claim %s has lost its volume", c.Name)
	}
	return nil
}

func (d *decision) deviceText() string {
	if r := d.device(); r != nil {
		return r.message
	}
	return ""
}
