package changes

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// Reasons of disks that are plugged or unplugged.
const (
	deviceWaits = "while the machine runs disks come and go only where nothing else waits for its restart"
	deviceGoes  = "the guest is asked to release it"
	deviceComes = "it is plugged; the guest sees it by its serial number"
	hasAlready  = "the machine that runs has it so"
)

// divide separates a list's entries into positions of those with a place in the order, and
// plugged ones by claim.
func (d *differ) divide(vm *spec.VirtualMachine, list reflect.Value) (ordered []int, plugged map[string]int) {
	ordered = make([]int, 0, list.Len())
	for i := range list.Len() {
		claim := ""
		if len(d.options.Plugged) > 0 {
			claim = claimOf(vm, list, i)
		}
		if claim == "" || !slices.Contains(d.options.Plugged, claim) {
			ordered = append(ordered, i)
			continue
		}
		if plugged == nil {
			plugged = map[string]int{}
		}
		plugged[claim] = i
	}
	return ordered, plugged
}

func claimOf(vm *spec.VirtualMachine, list reflect.Value, i int) string {
	switch e := list.Index(i).Addr().Interface().(type) {
	case *spec.Disk:
		switch {
		case e.PersistentVolumeClaim != nil:
			return e.PersistentVolumeClaim.ClaimName
		case e.VolumeClaimTemplate != nil:
			return spec.DiskClaimName(vm.Name, spec.DiskName(vm.Spec.VM.Disks, i))
		}
	case *spec.BlockDeviceRef:
		return e.Claim()
	}
	return ""
}

// deviceChange is how a change relates to plugged disks.
type deviceChange int

const (
	// deviceNone is unrelated to them.
	deviceNone deviceChange = iota
	// deviceMay is a disk that can be plugged or unplugged while the machine runs.
	deviceMay
	// deviceIs is one that is plugged already.
	deviceIs
)

func (d *differ) device(at *location, had, has bool) deviceChange {
	if !d.options.PlugsDisks || had == has || at.kind != inList {
		return deviceNone
	}
	vm := d.new
	if had {
		vm = d.old
	}
	disk := coming{at: len(d.changes)}
	switch at.pattern() {
	case "spec.vm.disks[]":
		disk.claim = claimOf(vm, reflect.ValueOf(vm.Spec.VM.Disks), at.index)
		disk.made = vm.Spec.VM.Disks[at.index].PersistentVolumeClaim == nil
	case "spec.blockDeviceRefs[]":
		disk.ref = &vm.Spec.BlockDeviceRefs[at.index]
		disk.claim = disk.ref.Claim()
	}
	kind := deviceNone
	plugged := disk.claim != "" && slices.Contains(d.options.Plugged, disk.claim)
	switch {
	// In a cluster a disk that leaves the manifest has an attachment that is deleted with it,
	// whatever else waits.
	case plugged && (has || d.options.Pod != nil):
		kind = deviceIs
	case plugged, has && Pluggable(vm, disk.claim):
		kind = deviceMay
	}
	if has && kind != deviceNone {
		d.coming = append(d.coming, disk)
	}
	return kind
}

// Pluggable reports whether a disk of a machine, by its claim, can be plugged while the machine
// runs: a volume of its own that has no place in the boot order and follows another disk. Where
// the manifest has no boot order, it is that of the lists, in which the disks of
// spec.blockDeviceRefs follow those of spec.vm.disks: one that is inserted between them is not
// plugged.
func Pluggable(vm *spec.VirtualMachine, claim string) bool {
	if vm == nil || claim == "" {
		return false
	}
	disks, refs := vm.Spec.VM.Disks, vm.Spec.BlockDeviceRefs
	list := reflect.ValueOf(disks)
	ordered, before := true, 0
	for i := range disks {
		ordered = ordered && disks[i].Bootindex == nil
	}
	for i := range refs {
		ordered = ordered && refs[i].BootOrder == nil
	}
	for i := range disks {
		if claimOf(vm, list, i) == claim {
			return disks[i].Bootindex == nil && before > 0 && (!ordered || len(refs) == 0)
		}
		if disks[i].Cdrom == nil {
			before++
		}
	}
	for i := range refs {
		if refs[i].Claim() == claim {
			return refs[i].BootOrder == nil && !refs[i].IsImage() && before > 0
		}
		before++
	}
	return false
}

// settleDevices determines how plugged disks are applied, now that all other changes are known.
func (d *differ) settleDevices() {
	waits := false
	for i := range d.changes {
		waits = waits || d.changes[i].Applied == AppliedRestart && !slices.Contains(d.devices, i)
	}
	for _, i := range d.devices {
		c := &d.changes[i]
		switch {
		case waits:
			c.Applied, c.Reason = AppliedRestart, deviceWaits
		case c.Operation == spec.OperationRemove:
			c.Applied, c.Reason = AppliedLive, deviceGoes
		default:
			c.Applied, c.Reason = AppliedLive, deviceComes
		}
	}
	if d.options.Pod != nil {
		d.judgePlaces()
	}
}

// judgePlaces determines which of the pluggable disks of a machine in a cluster wait
// nevertheless. Plugged ones stay.
func (d *differ) judgePlaces() {
	pod := d.options.Pod
	places := 0
	for i := range pod.Attachments {
		if !pod.Attachments[i].Own {
			places++
		}
	}
	for _, had := range []bool{true, false} {
		for i := range d.coming {
			disk := &d.coming[i]
			c := &d.changes[disk.at]
			if c.Applied != AppliedLive || had != slices.Contains(d.options.Plugged, disk.claim) {
				continue
			}
			if why := pod.keepsOut(disk, places); why != "" {
				c.Applied, c.Reason = AppliedRestart, why
				continue
			}
			places++
		}
	}
}

// keepsOut returns why a pluggable disk waits for the next start; places is the number of places
// for plugged disks in use.
func (p *Pod) keepsOut(disk *coming, places int) string {
	holds, known := p.Contents[disk.claim]
	by := slices.IndexFunc(p.Attachments, func(a Attachment) bool { return !a.Own && a.Claim == disk.claim })
	switch {
	case disk.made:
		return "its claim is made for the next start"
	case slices.Contains(p.Claims, disk.claim):
		return "the machine's pod has its claim already"
	case known && (holds.Image || disk.ref != nil && holds.Disk != disk.ref.Name):
		return "its claim is not that of a disk"
	case slices.ContainsFunc(p.Attachments, func(a Attachment) bool { return a.Own && a.Claim == disk.claim }):
		return ""
	case places >= limits.MaxAttached:
		return fmt.Sprintf("the machine has no more than %d places for disks that come while it runs", limits.MaxAttached)
	case by >= 0:
		return "it is attached by " + p.Attachments[by].Name
	}
	return ""
}
