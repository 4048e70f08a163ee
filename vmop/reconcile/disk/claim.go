package disk

import (
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// claim creates the claim. It reports whether there is one that belongs to the disk.
func (d *decision) claim() bool {
	c, name := d.s.Claim, d.claimName
	known := ""
	if t := d.disk.Status.Target; t != nil {
		known = string(t.PersistentVolumeClaimUID)
	}
	switch {
	case c == nil && known != "" && known != d.cloneRefused():
		d.fail(conditions.ReasonClaimGone, "claim %s is gone, and with it what was on the %s: no empty one takes its place. Delete this %[2]s, and make another one", name, d.noun)
		return false
	case c == nil:
		d.newClaim()
		return false
	case !d.mine(c):
		d.fail(conditions.ReasonDiskClaimInTheWay,
			"claim %s was not made for this %s, and is left alone: name the %[2]s otherwise, delete the claim, or use it as persistentVolumeClaim of a machine's disk", name, d.noun)
		return false
	case known != "" && known != string(c.UID) && known != d.cloneRefused():
		d.fail(conditions.ReasonClaimGone, "claim %s is not the one that the %s was in, which is gone; it is left alone. Delete this %[2]s, and make another one", name, d.noun)
		return false
	case c.DeletionTimestamp != nil && d.cloneRefused() == string(c.UID) && !d.isFilled():
		d.wait(conditions.ReasonDiskProvisioning, "claim %s, which was to be a clone and holds nothing, is being deleted; a copy takes its place", name)
		return false
	case c.DeletionTimestamp != nil:
		d.fail(conditions.ReasonClaimTerminating, "claim %s is deleted with what is on the %s once no pod uses it, which nothing stops. Copy what you need, delete this %[2]s, and make another one", name, d.noun)
		return false
	case c.Status.Phase == corev1.ClaimLost:
		d.fail(conditions.ReasonClaimLost, "claim %s has lost its volume: restore the volume, or delete this %s and make another one", name, d.noun)
		return false
	}
	d.next.Target = &spec.VirtualDiskTarget{PersistentVolumeClaim: name, PersistentVolumeClaimUID: c.UID, Namespace: d.namespace()}
	// Nothing is written to a claim before its UID is in the status.
	if known != string(c.UID) {
		d.wait(conditions.ReasonDiskProvisioning, "claim %s is there", name)
		return false
	}
	return !d.lateClone()
}
