package machine

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/attachment"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/types"
)

func (d *decision) findMounts() {
	if d.pod.state != podAbsent || !d.wanted() || len(d.s.Attachments) == 0 {
		return
	}
	// The machine's own attachments are in the manifest and thus in the next pod, or are being
	// deleted.
	others := slices.DeleteFunc(slices.Clone(d.s.Attachments), func(a spec.VirtualMachineBlockDeviceAttachment) bool {
		return objects.OwnsAttachment(d.s.VM, &a)
	})
	d.mounts, d.exporter, d.exporterUntil = attachment.Mounts(attachment.Start{
		Machine: d.vm, Attachments: others, Claims: d.s.Claims, Pods: d.s.Pods, Now: d.s.Now,
	})
}

// exporting reports whether the exporter of a disk that the next pod mounts itself has not ended
// yet.
func (d *decision) exporting() bool {
	if d.exporter == "" {
		return false
	}
	if !d.exporterUntil.IsZero() {
		d.wakeAt(d.exporterUntil)
	}
	d.running.setWaiting(spec.ReasonDisksInUse, named(names.KindPod, d.exporter), "pod %s, which has exported an attached disk, is ending; the machine is started with the disk then", d.exporter)
	return true
}

func (d *decision) ownAttachments() []*spec.VirtualMachineBlockDeviceAttachment {
	var all []*spec.VirtualMachineBlockDeviceAttachment
	for i := range d.s.Attachments {
		if a := &d.s.Attachments[i]; a.Spec.VirtualMachineName == d.s.VM.Name && a.UID != "" {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *spec.VirtualMachineBlockDeviceAttachment) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// attachments returns the disks that the runner is to plug. A connection to another pod is about
// a run that is over: the next one has another key, and no exporter serves it yet. What the pod
// mounts or is to mount, the guest has from the beginning.
func (d *decision) attachments() []runnerconfig.Attachment {
	mounts, exists := d.mounts, d.pod.pod != nil && d.pod.pod.UID != ""
	if exists {
		mounts = objects.AttachedBy(d.pod.pod)
	}
	all := d.ownAttachments()
	connection := func(a *spec.VirtualMachineBlockDeviceAttachment) *spec.AttachmentConnection {
		if c := a.Status.Connection; c != nil && exists && c.PodUID == d.pod.pod.UID {
			return c
		}
		return nil
	}
	holders := map[string]types.UID{}
	for _, m := range mounts {
		holders[m.Claim] = m.For
		for _, a := range all {
			if c := connection(a); c != nil && c.Direct && !c.Detach && a.Spec.BlockDeviceRef.ClaimName() == m.Claim {
				holders[m.Claim] = a.UID
				break
			}
		}
	}
	var out []runnerconfig.Attachment
	for _, a := range all {
		c, entry := connection(a), runnerconfig.Attachment{UID: string(a.UID), Name: a.Name}
		if objects.OwnsAttachment(d.s.VM, a) {
			// The guest sees the disk as it will after the next start.
			entry.Name = machineconfig.ClaimDiskName(a.Spec.BlockDeviceRef.ClaimName())
		}
		if p := a.Status.Place; p >= 1 && p <= attachment.MaxAttached {
			entry.Place = int(p)
		}
		i := slices.IndexFunc(mounts, func(m objects.Attached) bool { return m.Claim == a.Spec.BlockDeviceRef.ClaimName() })
		switch {
		case c != nil && !c.Direct:
			entry.Detach = c.Detach // until then the exporter serves the last writes
			// An invalid address written by another client must not keep the machine from having
			// a configuration.
			if _, err := netip.ParseAddrPort(c.Address); err == nil && len(c.Fingerprint) == 64 && strings.Trim(c.Fingerprint, "0123456789abcdef") == "" {
				entry.Address, entry.Fingerprint = c.Address, c.Fingerprint
			}
		case c != nil && c.Detach:
			entry.Detach = true
		case i >= 0 && holders[mounts[i].Claim] == a.UID:
			entry.Path = mounts[i].Path()
			entry.GrowTo = runnerconfig.Bytes(virtualDiskSize(d.claim(mounts[i].Claim)))
		default:
			continue
		}
		out = append(out, entry)
	}
	return out
}
