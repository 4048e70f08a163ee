package machine

import (
	"slices"
	"strconv"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/attachment"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// blockDevices returns the status of spec.blockDeviceRefs and of hotplugged disks. What this
// decision did not examine stays as stored.
func (d *decision) blockDevices() []spec.BlockDeviceStatus {
	var out []spec.BlockDeviceStatus
	runs := d.pod.state == podRunning && d.reportedRunning()
	for i := range d.disks {
		disk := &d.disks[i]
		if disk.Ref == nil || len(out) == spec.MaxBlockDevices {
			continue
		}
		s := spec.BlockDeviceStatus{Kind: disk.Ref.Kind, Name: disk.Ref.Name, BootOrder: disk.Ref.BootOrder}
		if i < len(d.serials) && d.serials[i] != "" {
			s.Target = serialTarget(d.serials[i])
		}
		if c := d.claim(disk.Claim); c != nil && ofReferred(c, disk.Ref) {
			s.Size = diskSize(c)
			s.Attached = runs && slices.Contains(objects.PodClaims(d.pod.pod), c.Name)
			if has := d.guestSize(disk.Name); s.Attached && has != nil {
				s.Size = has
			}
		}
		out = append(out, s)
	}
	if d.disks != nil {
		out = d.withHot(out, runs)
	}
	if d.disks == nil && len(d.vm.Spec.BlockDeviceRefs) > 0 {
		for _, s := range d.stored.BlockDeviceRefs {
			if !s.Hotplugged || d.refersTo(s.Kind, s.Name) {
				s.Attached = s.Attached && runs
				out = append(out, s)
			}
		}
	}
	if runs {
		out = append(out, d.hotplugged()...)
	}
	return out
}

func (d *decision) hotplugged() []spec.BlockDeviceStatus {
	var out []spec.BlockDeviceStatus
	for _, a := range d.ownAttachments() {
		if !d.guestHas(a) || len(out) == attachment.MaxAttached || d.isHot(a.Spec.BlockDeviceRef.ClaimName()) && d.refersTo(string(a.Spec.BlockDeviceRef.Kind), a.Spec.BlockDeviceRef.Name) {
			continue
		}
		out = append(out, d.attachedBy(a))
	}
	return out
}

// withHot inserts the references to hotplugged disks, present or pending, in manifest order.
func (d *decision) withHot(others []spec.BlockDeviceStatus, runs bool) []spec.BlockDeviceStatus {
	if len(d.hot) == 0 {
		return others
	}
	var out []spec.BlockDeviceStatus
	for i := range d.vm.Spec.BlockDeviceRefs {
		ref := &d.vm.Spec.BlockDeviceRefs[i]
		if len(out) == spec.MaxBlockDevices {
			break
		}
		if !d.isHot(ref.Claim()) {
			if len(others) > 0 {
				out, others = append(out, others[0]), others[1:]
			}
			continue
		}
		s := spec.BlockDeviceStatus{Kind: ref.Kind, Name: ref.Name}
		if a := d.hotBy(ref.Claim()); a != nil && runs && d.guestHas(a) {
			s = d.attachedBy(a)
		} else if c := d.claim(ref.Claim()); c != nil && ofReferred(c, ref) {
			s.Size = diskSize(c)
		}
		out = append(out, s)
	}
	return out
}

func (d *decision) refersTo(kind, name string) bool {
	return slices.ContainsFunc(d.vm.Spec.BlockDeviceRefs, func(r spec.BlockDeviceRef) bool { return r.Kind == kind && r.Name == name })
}

func (d *decision) guestHas(a *spec.VirtualMachineBlockDeviceAttachment) bool {
	i := slices.IndexFunc(d.stored.Attachments, func(r spec.MachineAttachment) bool { return r.UID == string(a.UID) })
	return i >= 0 && attachment.GuestHas(&d.stored.Attachments[i])
}

func (d *decision) attachedBy(a *spec.VirtualMachineBlockDeviceAttachment) spec.BlockDeviceStatus {
	s := spec.BlockDeviceStatus{
		Kind: string(a.Spec.BlockDeviceRef.Kind), Name: a.Spec.BlockDeviceRef.Name,
		Attached: true, Hotplugged: true, VirtualMachineBlockDeviceAttachmentName: a.Name,
	}
	if serial := d.attachedSerials[a.UID]; serial != "" {
		s.Target = serialTarget(serial)
	} else if i := slices.IndexFunc(d.stored.BlockDeviceRefs, func(b spec.BlockDeviceStatus) bool {
		return b.VirtualMachineBlockDeviceAttachmentName == a.Name
	}); i >= 0 {
		s.Target = d.stored.BlockDeviceRefs[i].Target
	}
	if c := d.claim(a.Spec.BlockDeviceRef.ClaimName()); c != nil {
		s.Size = diskSize(c)
	}
	return s
}

func serialTarget(serial string) string { return "/dev/disk/by-id/virtio-" + serial }

func (d *decision) guestSize(disk string) *resource.Quantity {
	for i := range d.stored.Disks {
		if d.stored.Disks[i].Name == disk {
			return new(d.stored.Disks[i].Size.DeepCopy())
		}
	}
	return nil
}

// diskSize returns the size a guest sees of the disk in a VirtualDisk's claim: a block device's
// is that of its volume, a file's that of the disk, limited by the volume; nil if unknown.
func diskSize(c *corev1.PersistentVolumeClaim) *resource.Quantity {
	if ofImage(c) {
		if n, err := strconv.ParseInt(c.Annotations[names.AnnotationImageSize], 10, 64); err == nil && n > 0 {
			return resource.NewQuantity(n, resource.BinarySI)
		}
		return nil
	}
	has, there := c.Status.Capacity[corev1.ResourceStorage]
	if !there {
		return nil
	}
	want := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if !isBlock(c) && virtualDiskSize(c) > 0 && spec.CompareQuantities(want, has) < 0 {
		has = want
	}
	return new(has.DeepCopy())
}
