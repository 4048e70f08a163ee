package attachment

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refused returns the first reason why the disk is not to be attached; nil if it may. It also
// sets the conditions about each of them.
func (d *decision) refused() *refusal {
	device, vm, room := d.device(), d.machine(), d.capacity()
	if device != nil {
		d.condition(conditions.BlockDeviceReady, metav1.ConditionFalse, conditions.ReasonBlockDeviceNotReady, "%s", device.message)
	} else {
		d.condition(conditions.BlockDeviceReady, metav1.ConditionTrue, conditions.ReasonBlockDeviceReady, "it can be attached")
	}
	if vm != nil {
		d.condition(conditions.VirtualMachineReady, metav1.ConditionFalse, conditions.ReasonVirtualMachineNotReady, "%s", vm.message)
	} else {
		d.condition(conditions.VirtualMachineReady, metav1.ConditionTrue, conditions.ReasonVirtualMachineReady, "the machine runs")
	}
	if room != nil {
		d.condition(conditions.AttachmentCapacity, metav1.ConditionFalse, conditions.ReasonCapacityReached, "%s", room.message)
	} else {
		d.condition(conditions.AttachmentCapacity, metav1.ConditionTrue, conditions.ReasonCapacityAvailable, "the machine has a place for the disk")
	}
	for _, r := range []*refusal{d.yields(), device, vm, d.mentioned(), room, d.inUse()} {
		if r != nil {
			return r
		}
	}
	return nil
}

// yields checks other attachments of the same disk: the attached one has it, or else one whose
// machine's pod has the volume, or else the oldest.
func (d *decision) yields() *refusal {
	for i := range d.s.Others {
		o := &d.s.Others[i]
		if o.UID == d.a.UID || o.Spec.BlockDeviceRef.ClaimName() != d.claim() || o.DeletionTimestamp != nil && o.Status.Connection == nil {
			continue
		}
		mine, theirs := rank(d.a), rank(o)
		if d.mounted() != nil {
			mine = max(mine, rankMounted)
			if o.Spec.VirtualMachineName == d.a.Spec.VirtualMachineName {
				theirs = max(theirs, rankMounted)
			}
		}
		if theirs > mine || theirs == mine && older(o, d.a) {
			return no(spec.AttachmentFailed, conditions.ReasonAttachmentConflict,
				"attachment %s has the disk, for machine %s; delete one of them", o.Name, o.Spec.VirtualMachineName)
		}
	}
	return nil
}

func older(a, b *spec.VirtualMachineBlockDeviceAttachment) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID)) < 0
}

func (d *decision) machine() *refusal {
	wait := func(format string, args ...any) *refusal {
		return no(spec.AttachmentPending, conditions.ReasonNotAttached, format, args...)
	}
	name, vm, p := d.a.Spec.VirtualMachineName, d.s.Machine, d.s.Pod
	switch {
	case vm == nil && d.s.MachineUnreadable != "":
		return wait("%s", d.s.MachineUnreadable)
	case vm == nil:
		return wait("there is no machine %s", name)
	case vm.DeletionTimestamp != nil:
		return wait("machine %s is being deleted", name)
	case p == nil || finished(p) || vm.Status.Phase != spec.PhaseRunning:
		return wait("machine %s is %s; the disk is attached when it runs", name, cmp.Or(vm.Status.Phase, spec.PhasePending))
	case p.DeletionTimestamp != nil:
		return wait("machine %s is being stopped; the disk is attached when it runs again", name)
	case p.Spec.NodeName == "" || p.UID == "":
		return wait("machine %s has no node yet", name)
	}
	return nil
}

func (d *decision) mentioned() *refusal {
	if d.s.Machine == nil || objects.OwnsAttachment(d.s.Machine, d.a) {
		return nil // the latter is how it has the disk until its next start
	}
	if slices.Contains(objects.ClaimNames(d.s.Machine), d.claim()) || slices.Contains(objects.SharedClaims(d.s.Machine), d.claim()) {
		return no(spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "claim %s is one of machine %s by its manifest already", d.claim(), d.s.Machine.Name)
	}
	return nil
}

func (d *decision) capacity() *refusal {
	n := 0
	for i := range d.s.Others {
		if o := &d.s.Others[i]; o.UID != d.a.UID && o.Spec.VirtualMachineName == d.a.Spec.VirtualMachineName && o.Status.Connection != nil {
			n++
		}
	}
	if n >= MaxAttached {
		return no(spec.AttachmentPending, conditions.ReasonCapacityReached, "machine %s has %d disks attached, which is as many as can be: detach one of them", d.a.Spec.VirtualMachineName, n)
	}
	return nil
}

// inUse refuses a claim that other pods have.
func (d *decision) inUse() *refusal {
	var all []string
	for i := range d.s.Users {
		p := &d.s.Users[i]
		switch c := d.a.Status.Connection; {
		case finished(p):
		case d.mounted() != nil && p.UID == d.s.Pod.UID && (c == nil || c.Direct):
			// It has it for this attachment.
		case slices.ContainsFunc(objects.AttachedBy(p), func(m objects.Attached) bool { return m.Claim == d.claim() }):
			return no(spec.AttachmentFailed, conditions.ReasonAttachmentConflict,
				"pod %s was made with claim %s, which was attached to its machine then, and has it until it ends: restart machine %[1]s to free it", p.Name, d.claim())
		default:
			all = append(all, p.Name)
		}
	}
	if slices.Sort(all); len(all) > 0 {
		return no(spec.AttachmentFailed, conditions.ReasonAttachmentConflict, "claim %s is used by pod %s; it is attached when nobody has it any more", d.claim(), strings.Join(all[:min(len(all), 5)], ", "))
	}
	return nil
}
