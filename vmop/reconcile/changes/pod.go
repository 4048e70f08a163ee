package changes

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/spec"
)

// Pod is what decides in a cluster which disks come to a machine while it runs: the pod
// that it runs in, and its attachments.
type Pod struct {
	// Claims are those of the volumes that the pod has.
	Claims []string
	// Attachments are those that name the machine.
	Attachments []Attachment
	// Contents are what is known of claims, by their names. One that is not in it may be
	// any disk's.
	Contents map[string]Content
}

// Attachment is a disk that is attached to a machine while it runs, or is to be.
type Attachment struct {
	Name  string
	Claim string
	// Own: the machine owns it, because its manifest has the disk.
	Own bool
}

// Content is what a volume claim holds.
type Content struct {
	// Image: that of an image, which nobody writes to.
	Image bool
	// Disk is the VirtualDisk that the claim is of; empty if it is of none.
	Disk string
}

// StartedWith is the pod of a machine that runs with a manifest, and with no attachments.
func StartedWith(vm *spec.VirtualMachine) *Pod {
	pod := &Pod{}
	if vm == nil {
		return pod
	}
	disks := reflect.ValueOf(vm.Spec.VM.Disks)
	for i := range vm.Spec.VM.Disks {
		if claim := claimOf(vm, disks, i); claim != "" {
			pod.Claims = append(pod.Claims, claim)
		}
	}
	for i := range vm.Spec.BlockDeviceRefs {
		pod.Claims = append(pod.Claims, vm.Spec.BlockDeviceRefs[i].Claim())
	}
	return pod
}

// plugged are the disks that the machine has by attachments of its own. What its pod has,
// it has from its start.
func (p *Pod) plugged() []string {
	var out []string
	for i := range p.Attachments {
		if a := &p.Attachments[i]; a.Own && !slices.Contains(p.Claims, a.Claim) {
			out = append(out, a.Claim)
		}
	}
	return out
}

// coming is a disk that comes to a machine.
type coming struct {
	at    int // its position among the changes
	claim string
	// made: its claim is made of a template. ref is the reference to it, if it has one.
	made bool
	ref  *spec.BlockDeviceRef
}

// keepsOut says why a disk that could be plugged waits for the next start; places are those
// for plugged disks that are taken.
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

// Proposed is [Between] for a manifest of a machine that runs and one that somebody
// proposes, where the machine may run with yet another one. waits are the changes that
// would wait for its restart if it had the proposed one: what Between says of each
// difference then gives way to whether it is among them.
func Proposed(old, new *spec.VirtualMachine, waits []spec.AwaitingChange, o Options) []Change {
	d := compare(manifest.Defaulted(old), manifest.Defaulted(new), o)
	for i := range d.changes {
		c := &d.changes[i]
		if c.Applied == AppliedNever || c.Reason == deviceGoes {
			continue
		}
		path := c.Path
		if place := d.places[i]; place != "" {
			path = place
		}
		at := slices.IndexFunc(waits, func(w spec.AwaitingChange) bool {
			// Disks that are removed are counted in one list, all others in another.
			return removesDisk(w.Operation, w.Path) == removesDisk(c.Operation, path) && (isOrContains(w.Path, path) || isOrContains(path, w.Path))
		})
		switch {
		case at >= 0:
			if w := &waits[at]; w.Path == path && w.Message != "" {
				c.Reason = w.Message
			} else if c.Reason == deviceComes {
				c.Reason = ""
			}
			c.Applied = AppliedRestart
		case c.Applied == AppliedRestart:
			c.Applied, c.Reason = AppliedLive, hasAlready
			if d.comes(i) {
				c.Reason = deviceComes
			}
		}
	}
	return d.changes
}

func removesDisk(operation, path string) bool {
	return operation == spec.OperationRemove && (&Change{Path: path}).IsDisk()
}

// comes reports whether a change is a disk that the machine was not started with.
func (d *differ) comes(i int) bool {
	c := &d.changes[i]
	return c.IsDisk() && c.Operation == spec.OperationAdd && slices.ContainsFunc(d.coming, func(disk coming) bool {
		return disk.at == i && !slices.Contains(d.options.Pod.claims(), disk.claim)
	})
}

func (p *Pod) claims() []string {
	if p == nil {
		return nil
	}
	return p.Claims
}
