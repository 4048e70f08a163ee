package machine

import (
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// neededClaim is a volume claim that the machine's pod will use.
type neededClaim struct {
	name string
	// disk is nil for the runner's own data.
	disk *machineconfig.Disk
	// share is the path in the manifest of a folder, which has no disk; "" for others.
	share string
	// found is nil if the claim does not exist.
	found *corev1.PersistentVolumeClaim
	// legacy: the claim has a name that VM-Operator gave before its version
	// 3.4. It is used as it is and not written.
	legacy bool
	// former is what the status says of the claim that the machine has run with, nil
	// if it has with none.
	former *spec.MachineClaim
	// renewed: the owner wants a new disk in place of the former claim.
	renewed bool
}

// field says in a message whose claim it is.
func (c *neededClaim) field() string {
	if c.share != "" {
		return c.share
	}
	if c.disk == nil {
		return "the runner's data"
	}
	return c.disk.Field()
}

// diskName is the name by which the status and people know the disk.
func (c *neededClaim) diskName() string {
	if c.disk == nil {
		return objects.RunnerDataDisk
	}
	return c.disk.Name
}

// gone reports whether the claim may have held something, is not there any more, and
// may not be made anew.
func (c *neededClaim) gone() bool {
	return c.found == nil && c.former != nil && !c.renewed
}

// referenced reports whether the manifest names the claim, rather than having it
// made.
func (c *neededClaim) referenced() bool {
	return c.share != "" || c.disk != nil && c.disk.Entry.PersistentVolumeClaim != nil
}

// ofRef reports whether the claim is that of an entry of spec.blockDeviceRefs.
func (c *neededClaim) ofRef() bool { return c.disk != nil && c.disk.Ref != nil }

// ofImage reports whether it is that of an image, which others may have at the same time.
func (c *neededClaim) ofImage() bool { return c.disk != nil && c.disk.IsImage() }
