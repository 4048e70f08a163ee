package live

import (
	"cmp"
	"slices"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// The phases of an attachment.
const (
	// AttachmentPending waits for its exporter, or for the guest to be started.
	AttachmentPending Phase = "Pending"
	// AttachmentAttaching is being plugged.
	AttachmentAttaching Phase = "Attaching"
	// AttachmentAttached is available to the guest.
	AttachmentAttached Phase = "Attached"
	// AttachmentDetaching waits for the guest to release it, or for its last writes.
	AttachmentDetaching Phase = "Detaching"
	// AttachmentDetached is unplugged, and all of it is closed.
	AttachmentDetached Phase = "Detached"
	// AttachmentFailed could not be plugged; the message has the reason.
	AttachmentFailed Phase = "Failed"
)

// attachments plugs the wanted disks and unplugs the others. Unplugging needs the guest's consent:
// it is asked a few times, and again after a reset, but never forced.
func (d *decider) attachments() {
	wanted := map[string]bool{}
	for _, a := range d.in.Config.Runner.VM.Attachments {
		wanted[a.UID] = !a.Detach
	}
	found := slices.Clone(d.in.Observed.Attached)
	slices.SortFunc(found, func(a, b Attached) int { return cmp.Compare(a.Port, b.Port) })
	taken := map[int]bool{}
	there := map[string]bool{}
	phases := map[string]Attachment{}
	closing := ""
	for _, o := range found {
		taken[o.Port] = true
		there[o.UID] = true
		switch {
		case o.UID == "":
			closing = "what the guest has written is brought to the storage"
			// It ends with the connection at the latest, which has a timeout.
			if exhausted, problem := d.attempt(d.goal("closed"), CloseDisk{Port: o.Port}); problem != "" || exhausted {
				closing = "it cannot be closed" + because(problem)
			}
		case wanted[o.UID]:
			phases[o.UID] = Attachment{Phase: AttachmentAttached, Place: o.Port + 1}
		default:
			a := Attachment{Phase: AttachmentDetaching, Place: o.Port + 1, Message: "the guest was asked to release it"}
			exhausted, problem := d.attempt(d.goal([]any{"released after reset", d.in.Observed.Resets}), UnplugDisk{UID: o.UID})
			if exhausted {
				a.Message = "the guest does not release it: it may be in use there; it is asked again after a reset" + because(problem)
			} else if problem != "" {
				a.Message += because(problem)
			}
			phases[o.UID] = a
		}
	}
	for _, a := range d.in.Config.Runner.VM.Attachments {
		is, known := phases[a.UID]
		if !known {
			is = d.missing(a, taken, closing)
		}
		is.UID, is.Name = a.UID, a.Name
		d.out.Attachments = append(d.out.Attachments, is)
	}
}

func (d *decider) missing(a runnerconfig.Attachment, taken map[int]bool, closing string) Attachment {
	free := d.place(a, taken)
	switch {
	case a.Detach && closing != "":
		return Attachment{Phase: AttachmentDetaching, Message: closing}
	case a.Detach:
		return Attachment{Phase: AttachmentDetached}
	case d.in.Machine.Ports == 0:
		return Attachment{Phase: AttachmentFailed, Message: "the machine was made before machines had places for disks that are plugged"}
	case a.Path == "" && a.Address == "":
		return Attachment{Phase: AttachmentPending, Message: "nobody exports it yet"}
	case a.Path == "" && d.in.Observed.RunState == statePrelaunch:
		return Attachment{Phase: AttachmentPending, Message: "the guest does not execute yet"}
	case free >= d.in.Machine.Ports:
		return Attachment{Phase: AttachmentPending, Message: "all places for disks that are plugged are taken: detach another one"}
	}
	step := PlugDisk{UID: a.UID, Serial: d.in.Config.Runner.VM.AttachmentSerial(a.UID), Port: free, Path: a.Path, GrowTo: int64(a.GrowTo)}
	exhausted, problem := d.attempt(d.goal([]any{a.Path, a.Address, a.Fingerprint}), step)
	taken[free] = !exhausted // one that cannot be plugged does not block its place
	switch {
	case exhausted:
		return Attachment{Phase: AttachmentFailed, Message: "it cannot be plugged" + because(problem)}
	case problem != "":
		return Attachment{Phase: AttachmentAttaching, Message: "it is tried again" + because(problem)}
	}
	return Attachment{Phase: AttachmentAttaching}
}

// place returns the port for an attachment: its previous one if that is free, otherwise the first
// one that is neither taken nor another attachment's previous one, otherwise any free one. It is
// beyond the last port if all are taken.
func (d *decider) place(a runnerconfig.Attachment, taken map[int]bool) int {
	if had := a.Place - 1; had >= 0 && had < d.in.Machine.Ports && !taken[had] {
		return had
	}
	others := map[int]bool{}
	for _, o := range d.in.Config.Runner.VM.Attachments {
		others[o.Place-1] = others[o.Place-1] || !o.Detach && o.UID != a.UID
	}
	free := -1
	for port := range d.in.Machine.Ports {
		if taken[port] {
			continue
		}
		if !others[port] {
			return port
		}
		if free < 0 {
			free = port // used if there is no better one
		}
	}
	if free < 0 {
		return d.in.Machine.Ports
	}
	return free
}
