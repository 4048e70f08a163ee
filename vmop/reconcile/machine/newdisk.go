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

// A claim that the machine has run with may hold its system. An empty one in its
// place would look to everybody like lost data, and to an installer like an
// invitation. So the status remembers these claims, and who wants a new disk says so
// by an annotation, which names the claim that is gone by its UID as well: the
// annotation may stay in a manifest for ever, and says nothing about the next loss.
//
// A machine that was deleted and is created again has another status, and is a new
// one: it takes up what claims there are, and gets those that there are not.

// diskName is the name by which the status and people know the disk.
func (c *neededClaim) diskName() string {
	if c.disk == nil {
		return objects.RunnerDataDisk
	}
	return c.disk.Name
}

// gone reports whether the claim may have held something, is not there any more, and
// may not be made anew.
func (c *neededClaim) gone() bool {
	return c.found == nil && c.former != nil && !c.renewed
}

// recallClaims finds the claims that the machine has run with, and those in whose
// place somebody wants a new disk.
func (d *decision) recallClaims() {
	wanted := strings.Split(d.s.VM.Annotations[names.AnnotationNewDisk], ",")
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

// noteClaims notes which claims the machine has run with.
func (d *decision) noteClaims() {
	var next []spec.MachineClaim
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

// hasRunWith reports whether the machine runs or has run with a claim that there is.
// Nothing noted it of a machine that VM-Operator or an earlier version of vmop has
// stopped: what such a machine has when it is first looked at counts.
func (d *decision) hasRunWith(c *neededClaim) bool {
	if d.pod.state != podAbsent && d.pod.state != podForeign {
		return d.pod.hasStarted() && slices.Contains(objects.PodClaims(d.pod.pod), c.name)
	}
	if len(d.stored.Claims) > 0 {
		return false
	}
	if end := d.stored.LastEnd; end != nil && c.found.CreationTimestamp.Before(&end.Time) {
		return true
	}
	origin, _ := d.findOrigin(&d.claims[0])
	return origin == machineconfig.OriginVMOperator && c.found.Status.Phase == corev1.ClaimBound
}

// newDisk is what the annotation says of a disk whose claim had the UID.
func newDisk(disk string, uid types.UID) string {
	return disk + ":" + string(uid[:min(len(uid), 8)])
}

// goneText says which claims are gone, and what to do.
func (d *decision) goneText() string {
	var which, value []string
	for i := range d.claims {
		if c := &d.claims[i]; c.gone() {
			which = append(which, "claim "+c.former.ClaimName+" of "+c.field())
			value = append(value, newDisk(c.former.Disk, c.former.UID))
		}
	}
	verb := " is"
	if len(which) > 1 {
		verb = " are"
	}
	return strings.Join(which, " and ") + ", which the machine has run with," + verb + " gone; restore it under its name, or, for a new and empty disk, run " + d.newDiskCommand(value...)
}

// afterDeletion says what follows for a machine whose claim is being deleted.
func (d *decision) afterDeletion(c *neededClaim) string {
	if c.referenced() || c.former == nil && !d.hasRunWith(c) {
		return ""
	}
	if c.former != nil && c.former.UID == c.found.UID && c.renewed {
		return ", and has a new and empty disk then"
	}
	return "; then restore it under its name, or, for a new and empty disk, run " + d.newDiskCommand(newDisk(c.diskName(), c.found.UID))
}

func (d *decision) newDiskCommand(value ...string) string {
	return fmt.Sprintf("kubectl annotate vm -n %s %s --overwrite %s=%s", d.vm.Namespace, d.vm.Name, names.AnnotationNewDisk, strings.Join(value, ","))
}

// newDisks are the disks whose images may be new ones. The machine has not run with
// them yet: then they are disks like any other.
func (d *decision) newDisks() []string {
	var out []string
	for i := range d.claims {
		if c := &d.claims[i]; c.renewed && c.disk != nil && (c.found == nil || c.found.UID != c.former.UID) {
			out = append(out, c.disk.Name)
		}
	}
	return out
}
