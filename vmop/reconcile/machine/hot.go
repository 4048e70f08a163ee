package machine

import (
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// A disk added to the manifest of a running machine reaches its guest by an attachment that the
// machine owns, unless other changes wait for a restart. Until the machine ends, neither its pod
// nor the runner's configuration has it otherwise. The next pod has it as it has its other disks,
// and the attachment is deleted. So writers to the disk are kept apart as for all attachments and
// pods: an exporter is created when no pod has the claim, and a pod when no exporter has.

func (d *decision) mineAttached() []*spec.VirtualMachineBlockDeviceAttachment {
	return slices.DeleteFunc(d.ownAttachments(), func(a *spec.VirtualMachineBlockDeviceAttachment) bool { return !objects.OwnsAttachment(d.s.VM, a) })
}

func (d *decision) hotBy(claim string) *spec.VirtualMachineBlockDeviceAttachment {
	for _, a := range d.mineAttached() {
		if a.Spec.BlockDeviceRef.ClaimName() == claim {
			return a
		}
	}
	return nil
}

// inPod returns what decides which disks are hotplugged; nil if the machine does not run.
func (d *decision) inPod() *changes.Pod {
	if d.pod.state != podRunning && d.pod.state != podTerminating {
		return nil
	}
	p := &changes.Pod{Claims: objects.PodClaims(d.pod.pod), Contents: map[string]changes.Content{}}
	for _, a := range d.ownAttachments() {
		p.Attachments = append(p.Attachments, changes.Attachment{
			Name: a.Name, Claim: a.Spec.BlockDeviceRef.ClaimName(), Own: objects.OwnsAttachment(d.s.VM, a),
		})
	}
	for i := range d.s.Claims {
		c := &d.s.Claims[i]
		content := changes.Content{Image: ofImage(c)}
		if disk := c.Labels[names.LabelDisk]; ofDisk(c, disk) {
			content.Disk = disk
		}
		p.Contents[c.Name] = content
	}
	return p
}

// between compares the manifest with that of the pod's start, and finds the disks to hotplug.
func (d *decision) between(old, new *spec.VirtualMachine) []changes.Change {
	pod := d.inPod()
	all := changes.Between(old, new, changes.Options{Pod: pod})
	if pod == nil {
		return all
	}
	disks := machineconfig.Disks(d.vm)
	for i := range all {
		c := &all[i]
		if c.Applied != changes.AppliedLive || c.Operation != spec.OperationAdd || !c.IsDisk() {
			continue
		}
		if at := slices.IndexFunc(disks, func(disk machineconfig.Disk) bool { return disk.Field() == c.Path }); at >= 0 {
			d.hot = append(d.hot, disks[at])
		}
	}
	return all
}

func (d *decision) knowsHot() bool {
	return d.pod.state != podRunning && d.pod.state != podTerminating || d.startKnown
}

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
		// A terminating attachment still has the name.
		if c := d.claim(disk.Claim); c != nil && c.DeletionTimestamp == nil && d.hotBy(disk.Claim) == nil {
			d.do(reconcile.Create{Object: objects.OwnAttachment(d.s.VM, disk)}, &d.configuration)
		}
	}
}

func (d *decision) tellHot() {
	for i := range d.hot {
		disk := &d.hot[i]
		if field := bootField(disk); field != "" {
			d.awaiting = append(d.awaiting, spec.AwaitingChange{Operation: spec.OperationAdd, Path: field, Message: "a disk that has come while the machine runs has no place in the boot order"})
		}
		a := d.hotBy(disk.Claim)
		switch {
		case a == nil:
			continue
		case a.DeletionTimestamp != nil:
			d.remarks = append(d.remarks, fmt.Sprintf("%s is attached again when the guest has released it, see kubectl describe vmbda %s", disk.Field(), a.Name))
		case a.Status.Phase == spec.AttachmentFailed:
			d.unplugged++
			d.awaiting = append(d.awaiting, spec.AwaitingChange{
				Operation: spec.OperationAdd, Path: disk.Field(),
				Message: "it cannot be attached while the machine runs, see kubectl describe vmbda " + a.Name + "; the next start has it",
			})
		case a.Status.Phase != spec.AttachmentAttached:
			d.remarks = append(d.remarks, fmt.Sprintf("%s is being attached, see kubectl describe vmbda %s", disk.Field(), a.Name))
		}
	}
}

func bootField(disk *machineconfig.Disk) string {
	switch {
	case disk.Ref != nil && disk.Ref.BootOrder != nil:
		return disk.Field() + ".bootOrder"
	case disk.Ref == nil && disk.Entry.Bootindex != nil:
		return disk.Field() + ".bootindex"
	}
	return ""
}
