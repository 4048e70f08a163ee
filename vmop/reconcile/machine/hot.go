package machine

import (
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/attachment"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// A disk that comes into the manifest of a machine that runs comes to its guest by an
// attachment that the machine owns, where nothing else waits for a restart. Until the
// machine ends its pod has nothing of it, nor has the runner's configuration, except as an
// attachment. The next pod has it as it has its other disks, and the attachment goes. So
// who writes to the disk is decided where it is decided for all attachments and pods:
// an exporter is made when no pod has the claim, and a pod when no exporter has.

// mine are the attachments that the machine owns, the oldest first.
func (d *decision) mineAttached() []*spec.VirtualMachineBlockDeviceAttachment {
	return slices.DeleteFunc(d.ownAttachments(), func(a *spec.VirtualMachineBlockDeviceAttachment) bool { return !objects.OwnsAttachment(d.s.VM, a) })
}

// hotBy is the attachment by which a disk comes, nil if there is none.
func (d *decision) hotBy(claim string) *spec.VirtualMachineBlockDeviceAttachment {
	for _, a := range d.mineAttached() {
		if a.Spec.BlockDeviceRef.ClaimName() == claim {
			return a
		}
	}
	return nil
}

// isHot reports whether the machine that runs has a disk, or gets it, by an attachment of
// its own.
func (d *decision) isHot(claim string) bool {
	return claim != "" && slices.ContainsFunc(d.hot, func(disk machineconfig.Disk) bool { return disk.Claim == claim })
}

// between compares the manifest with that of the pod's start, and finds the disks that
// come while the machine runs.
func (d *decision) between(old, new *spec.VirtualMachine) []changes.Change {
	var o changes.Options
	if d.pod.state == podRunning || d.pod.state == podTerminating {
		o.PlugsDisks = true
		for _, a := range d.mineAttached() {
			o.Plugged = append(o.Plugged, a.Spec.BlockDeviceRef.ClaimName())
		}
	}
	all := changes.Between(old, new, o)
	if !o.PlugsDisks {
		return all
	}
	disks := machineconfig.Disks(d.vm)
	places := d.placesTaken()
	for _, had := range []bool{true, false} { // what has a place keeps it
		for i := range all {
			c := &all[i]
			if c.Applied != changes.AppliedLive || c.Operation != spec.OperationAdd || !c.IsDisk() {
				continue
			}
			at := slices.IndexFunc(disks, func(disk machineconfig.Disk) bool { return disk.Field() == c.Path })
			if at < 0 || had != slices.Contains(o.Plugged, disks[at].Claim) {
				continue
			}
			if why := d.notHot(&disks[at], places); why != "" {
				c.Applied, c.Reason = changes.AppliedRestart, why
				continue
			}
			places++
			d.hot = append(d.hot, disks[at])
		}
	}
	return all
}

// placesTaken are the places for disks that are plugged which others have, or may come to
// have.
func (d *decision) placesTaken() int {
	n := 0
	for _, a := range d.ownAttachments() {
		if !objects.OwnsAttachment(d.s.VM, a) {
			n++
		}
	}
	return n
}

// notHot says why a disk waits for the next start although it could be plugged.
func (d *decision) notHot(disk *machineconfig.Disk, places int) string {
	switch c := d.claim(disk.Claim); {
	case disk.Entry == nil || disk.Entry.PersistentVolumeClaim == nil:
		return "its claim is made for the next start"
	case slices.Contains(objects.PodClaims(d.pod.pod), disk.Claim):
		return "the machine's pod has its claim already"
	case c != nil && (ofImage(c) || disk.Ref != nil && !ofReferred(c, disk.Ref)):
		return "its claim is not that of a disk"
	case d.hotBy(disk.Claim) != nil:
		return ""
	case places >= attachment.MaxAttached:
		return fmt.Sprintf("the machine has no more than %d places for disks that come while it runs", attachment.MaxAttached)
	}
	for _, a := range d.ownAttachments() {
		if a.Spec.BlockDeviceRef.ClaimName() == disk.Claim {
			return "it is attached by " + a.Name
		}
	}
	return ""
}

// knowsHot reports whether it is known which disks come to the machine that runs.
func (d *decision) knowsHot() bool {
	return d.pod.state != podRunning && d.pod.state != podTerminating || d.startKnown
}

// attachDisks makes and deletes the attachments of the machine's own.
func (d *decision) attachDisks() {
	if !d.knowsHot() {
		return
	}
	for _, a := range d.mineAttached() {
		if a.DeletionTimestamp == nil && !d.isHot(a.Spec.BlockDeviceRef.ClaimName()) {
			d.do(reconcile.DeleteAttachment{Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion}, &d.configuration)
		}
	}
	if d.pod.state != podRunning || !d.wanted() || d.restarts || d.s.VM.UID == "" {
		return
	}
	for i := range d.hot {
		disk := &d.hot[i]
		// One that is going is waited for: it has the name.
		if c := d.claim(disk.Claim); c != nil && c.DeletionTimestamp == nil && d.hotBy(disk.Claim) == nil {
			d.do(reconcile.Create{Object: objects.OwnAttachment(d.s.VM, disk)}, &d.configuration)
		}
	}
}

// tellHot says of the disks that come while the machine runs how far they are.
func (d *decision) tellHot() {
	for i := range d.hot {
		disk := &d.hot[i]
		a := d.hotBy(disk.Claim)
		switch {
		case a == nil:
			continue
		case a.DeletionTimestamp != nil:
			d.remark += fmt.Sprintf("; %s is attached again when the guest has released it, see kubectl describe vmbda %s", disk.Field(), a.Name)
		case a.Status.Phase == spec.AttachmentFailed:
			d.unplugged++
			d.awaiting = append(d.awaiting, spec.AwaitingChange{
				Operation: spec.OperationAdd, Path: disk.Field(),
				Message: "it cannot be attached while the machine runs, see kubectl describe vmbda " + a.Name + "; the next start has it",
			})
		case a.Status.Phase != spec.AttachmentAttached:
			d.remark += fmt.Sprintf("; %s is being attached, see kubectl describe vmbda %s", disk.Field(), a.Name)
		}
	}
}
