package changes

import (
	"github.com/vmop/sdk/vmop/spec"
)

// Options are what can be done to a running machine. The zero value is a cluster without special
// abilities.
type Options struct {
	// PlugsDisks is true if disks that come are plugged into a running machine, where nothing else
	// of the change waits for a restart.
	PlugsDisks bool
	// Plugged are the disks, by their claims, that came while the machine ran and are
	// at its places for what is plugged. They have no part in the order of the others,
	// and can go again. Changes of a list that has some are not to be applied one after
	// the other.
	Plugged []string
	// Pod is the pod of a machine that runs in a cluster, where disks are plugged by
	// attachments: it takes the place of PlugsDisks and Plugged. Nil is for a machine that
	// gets none, or runs on a host. [StartedWith] is that of a machine which runs, and of
	// which nothing but its manifest is known.
	Pod *Pod
	// Judge has the last word on what becomes of a change, if it is not nil: what waits
	// for a restart then keeps disks from being plugged.
	Judge func(*Change)
}

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

// coming is a disk that comes to a machine.
type coming struct {
	at    int // its position among the changes
	claim string
	// made: its claim is made of a template. ref is the reference to it, if it has one.
	made bool
	ref  *spec.BlockDeviceRef
}
