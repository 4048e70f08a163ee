package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A claim that the machine has run with may hold its system. An empty one in its place would look
// like lost data, and to an installer like an invitation. So the status remembers these claims,
// and a user requests a new disk by an annotation that includes the UID of the lost claim: the
// annotation may stay in a manifest for ever and does not cover the next loss.
//
// A machine that was deleted and created again has a new status: it takes the claims that exist
// and gets those that do not.

// recallClaims finds the claims that the machine has run with, and those for which a new disk is
// requested.
func (d *decision) recallClaims() {
	var wanted []string
	if text := d.s.VM.Annotations[names.AnnotationNewDisk]; text != "" {
		wanted = strings.Split(text, ",")
	}
	for i := range d.claims {
		c := &d.claims[i]
		if c.referenced() {
			continue
		}
		for j := range d.stored.Claims {
			if f := &d.stored.Claims[j]; f.Disk == c.diskName() {
				c.former = f
				c.renewed = slices.ContainsFunc(wanted, func(w string) bool { return strings.TrimSpace(w) == newDisk(f.Disk, f.UID) })
			}
		}
	}
}

func (d *decision) noteClaims() {
	next := make([]spec.MachineClaim, 0, len(d.claims))
	for i := range d.claims {
		switch c := &d.claims[i]; {
		case c.referenced():
		case c.found != nil && d.mine(c.found) && d.hasRunWith(c):
			next = append(next, spec.MachineClaim{Disk: c.diskName(), ClaimName: c.name, UID: c.found.UID})
		case c.former != nil:
			next = append(next, *c.former)
		}
	}
	d.ranWith = next
}

// hasRunWith reports whether the machine runs or has run with an existing claim. For a machine
// stopped by VM-Operator or by an earlier version of vmop nothing noted it: what it has when
// first observed counts.
func (d *decision) hasRunWith(c *neededClaim) bool {
	if d.pod.state != podAbsent && d.pod.state != podForeign && d.pod.state != podOrphaned {
		return d.pod.hasStarted() && objects.PodHasClaim(d.pod.pod, c.name)
	}
	if len(d.stored.Claims) > 0 {
		return false
	}
	if end := d.stored.LastEnd; end != nil && c.found.CreationTimestamp.Before(&end.Time) {
		return true
	}
	origin, _ := d.findOrigin(d.runnerData())
	return origin == machineconfig.OriginVMOperator && c.found.Status.Phase == corev1.ClaimBound
}

func newDisk(disk string, uid types.UID) string {
	return disk + ":" + string(uid[:min(len(uid), 8)])
}

func (d *decision) goneText() (text, commands string) {
	var gone, value, disks []string
	field := ""
	for i := range d.claims {
		if c := &d.claims[i]; c.gone() {
			gone, field = append(gone, c.former.ClaimName), c.field()
			disks, value = append(disks, c.former.Disk), append(value, newDisk(c.former.Disk, c.former.UID))
		}
	}
	text = "claim " + gone[0] + " of " + field + " is gone; restore it, or ask for an empty disk"
	if len(gone) > 1 {
		text = "claims " + strings.Join(gone, ", ") + " are gone; restore them, or ask for empty disks"
	}
	return text + byAnnotation(value), ": the machine has run with what is gone; " + d.newDiskCommands(disks, value)
}

func (d *decision) afterDeletion(c *neededClaim) (text, commands string) {
	if c.referenced() || c.former == nil && !d.hasRunWith(c) {
		return "the machine is not started again before", ""
	}
	if c.former != nil && c.former.UID == c.found.UID && c.renewed {
		return "the machine has a new and empty disk then", ""
	}
	disks, value := []string{c.diskName()}, []string{newDisk(c.diskName(), c.found.UID)}
	return "restore it, or ask for an empty disk" + byAnnotation(value), ": the machine is not started before it is gone; " + d.newDiskCommands(disks, value)
}

func (d *decision) newDiskCommands(disks, value []string) string {
	return fmt.Sprintf("for an empty disk, run vmop-cli start --cluster -n %s %s --new-disk %s, or kubectl annotate vm -n %[1]s %[2]s --overwrite %[4]s%[5]s",
		d.vm.Namespace, d.vm.Name, strings.Join(disks, " --new-disk "), newDiskAnnotation, strings.Join(value, ","))
}

const newDiskAnnotation = names.AnnotationNewDisk + "="

// byAnnotation ends a message that asks for the annotation; [NewDisks] parses it.
func byAnnotation(value []string) string {
	return " by the annotation " + newDiskAnnotation + strings.Join(value, ",")
}

// NewDisks returns the value of [names.AnnotationNewDisk] for a machine whose owner wants new,
// empty disks in place of some that are lost or being deleted, by their names in status.claims.
// Entries for other disks stay. Only what the condition [spec.ConditionBlockDevicesReady] asks
// for is accepted: no user should agree today to a loss of tomorrow.
func NewDisks(vm *spec.VirtualMachine, disks ...string) (string, error) {
	var asked []string
	if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionBlockDevicesReady); c != nil && (c.Reason == spec.ReasonClaimGone || c.Reason == spec.ReasonClaimTerminating) {
		_, value, _ := strings.Cut(c.Message, newDiskAnnotation)
		asked = strings.Split(value, ",")
	}
	var out, gone []string
	for _, c := range vm.Status.Claims {
		entry := newDisk(c.Disk, c.UID)
		if slices.Contains(strings.Split(vm.Annotations[names.AnnotationNewDisk], ","), entry) {
			out = append(out, entry)
		}
		if slices.Contains(asked, entry) {
			gone = append(gone, c.Disk)
		}
	}
	for _, disk := range disks {
		i := slices.IndexFunc(vm.Status.Claims, func(c spec.MachineClaim) bool { return c.Disk == disk || c.Disk == disk+"-disk" })
		if i < 0 || !slices.Contains(gone, vm.Status.Claims[i].Disk) {
			is := "no disk of it is gone"
			if len(gone) > 0 {
				is = "gone is " + strings.Join(gone, ", ")
			}
			return "", fmt.Errorf("disk %q of %s/%s: %s (see condition %s)", disk, vm.Namespace, vm.Name, is, spec.ConditionBlockDevicesReady)
		}
		if entry := newDisk(vm.Status.Claims[i].Disk, vm.Status.Claims[i].UID); !slices.Contains(out, entry) {
			out = append(out, entry)
		}
	}
	return strings.Join(out, ","), nil
}

// newDisks returns the disks whose images may be new ones, because the machine has not run with
// them yet.
func (d *decision) newDisks() []string {
	var out []string
	for i := range d.claims {
		if c := &d.claims[i]; c.renewed && c.disk != nil && (c.found == nil || c.found.UID != c.former.UID) {
			out = append(out, c.disk.Name)
		}
	}
	return out
}
