package machine

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// attachments are the disks that the runner of the present pod is to plug. What their
// status says of another pod is about a run that is over: the next one has another key,
// and nobody exports anything to it yet.
func (d *decision) attachments() []runnerconfig.Attachment {
	if d.s.Pod == nil || d.s.Pod.UID == "" {
		return nil
	}
	var all []*spec.VirtualMachineBlockDeviceAttachment
	for i := range d.s.Attachments {
		a := &d.s.Attachments[i]
		if c := a.Status.Connection; c != nil && c.PodUID == d.s.Pod.UID && a.Spec.VirtualMachineName == d.s.VM.Name && a.UID != "" {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *spec.VirtualMachineBlockDeviceAttachment) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var out []runnerconfig.Attachment
	for _, a := range all {
		c := a.Status.Connection
		entry := runnerconfig.Attachment{UID: string(a.UID), Name: a.Name, Detach: c.Detach}
		// The machine has a configuration, whatever somebody has written there.
		if _, err := netip.ParseAddrPort(c.Address); err == nil && len(c.Fingerprint) == 64 && strings.Trim(c.Fingerprint, "0123456789abcdef") == "" {
			entry.Address, entry.Fingerprint = c.Address, c.Fingerprint
		}
		out = append(out, entry)
	}
	return out
}
