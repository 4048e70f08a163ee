package changes

import (
	"github.com/vmop/sdk/vmop/spec"
)

// Options are what can be done to a running machine. The zero value is a cluster without special
// abilities.
type Options struct {
	// PlugsDisks is true if added disks are plugged into a running machine, where nothing else of
	// the change waits for a restart.
	PlugsDisks bool
	// Plugged are the disks, by their claims, that were plugged while the machine ran. They have
	// no place in the order of the others and can be unplugged. Changes of a list that contains
	// some cannot be applied one after the other.
	Plugged []string
	// Pod is the pod of a running machine in a cluster, where disks are plugged by attachments:
	// it replaces PlugsDisks and Plugged. Nil is for a machine that gets none, or runs on a host.
	// [StartedWith] is for a running machine of which only the manifest is known.
	Pod *Pod
	// Judge, if not nil, makes the final decision about a change: a change that it has wait for a
	// restart keeps disks from being plugged.
	Judge func(*Change)
}

// Pod is what determines in a cluster which disks are plugged into a running machine: its pod and
// its attachments.
type Pod struct {
	// Claims are those of the pod's volumes.
	Claims []string
	// Attachments are those that name the machine.
	Attachments []Attachment
	// Contents are what is known of claims, by their names. One that is not in it may be any
	// disk's.
	Contents map[string]Content
}

// Attachment is a disk that is attached to a running machine, or is to be.
type Attachment struct {
	Name  string
	Claim string
	// Own: the machine owns it, because its manifest has the disk.
	Own bool
}

// Content is what a volume claim holds.
type Content struct {
	// Image: that of an image, which is read-only.
	Image bool
	// Disk is the VirtualDisk that owns the claim, or "".
	Disk string
}

// coming is a disk that is to be plugged.
type coming struct {
	at    int
	claim string
	// made: its claim is created from a template. ref is the reference to it, if it has one.
	made bool
	ref  *spec.BlockDeviceRef
}
