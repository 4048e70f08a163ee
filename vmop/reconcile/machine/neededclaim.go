package machine

import (
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

type neededClaim struct {
	name string
	// disk is nil for the runner's own data.
	disk *machineconfig.Disk
	// share is the manifest path of a shared folder, which has no disk; otherwise "".
	share string
	// found is nil if the claim does not exist.
	found *corev1.PersistentVolumeClaim
	// legacy: the name is one that VM-Operator gave before its version 3.4. The claim is used as
	// it is and not written.
	legacy bool
	// former is the status's record of the claim that the machine has run with, or nil.
	former *spec.MachineClaim
	// renewed: the owner wants a new disk in place of the former claim.
	renewed bool
}

func (c *neededClaim) field() string {
	if c.share != "" {
		return c.share
	}
	if c.disk == nil {
		return "the runner's data"
	}
	return c.disk.Field()
}

func (c *neededClaim) diskName() string {
	if c.disk == nil {
		return objects.RunnerDataDisk
	}
	return c.disk.Name
}

// gone reports whether a claim that may have had data no longer exists and may not be created
// anew.
func (c *neededClaim) gone() bool {
	return c.found == nil && c.former != nil && !c.renewed
}

// referenced reports whether the manifest names the claim, rather than having it created.
func (c *neededClaim) referenced() bool {
	return c.share != "" || c.disk != nil && c.disk.Entry.PersistentVolumeClaim != nil
}

func (c *neededClaim) ofRef() bool { return c.disk != nil && c.disk.Ref != nil }

// ofImage reports whether it is that of an image, which several machines may use at once.
func (c *neededClaim) ofImage() bool { return c.disk != nil && c.disk.IsImage() }
