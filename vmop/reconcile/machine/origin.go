package machine

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
)

// recordOrigin notes who made the machine, once, on the claim with the runner's
// data: firmware variables and disks are what they are because of it, and like
// them it outlives machine and ConfigMap. It reports whether that is settled. A
// ConfigMap of VM-Operator, by which it is known, is not written before it is
// seen to be noted: the two are not observed at the same time.
func (d *decision) recordOrigin() bool {
	c := d.runnerData()
	origin, recorded := d.findOrigin(c)
	d.origin = origin
	if cm := d.s.ConfigMap; cm != nil && cm.Annotations[names.AnnotationApplied] == "" && !recorded && (c.found == nil || c.found.DeletionTimestamp != nil) {
		d.unmade = true
		return false // the claim may come back, with nothing noted on it; a new one is made first
	}
	if recorded || c.found == nil || c.legacy || !d.mine(c.found) || c.found.DeletionTimestamp != nil {
		return true // one of a former name is VM-Operator's in any case
	}
	d.do(reconcile.UpdateClaim{
		Name: c.name, UID: c.found.UID, ResourceVersion: c.found.ResourceVersion,
		Annotations: map[string]string{names.AnnotationOrigin: string(origin)},
	}, &d.devices)
	d.unmade = true
	return false
}

// findOrigin decides who made the machine. VM-Operator has left a claim with its
// labels behind, and a ConfigMap, if any, that vmop has not written.
func (d *decision) findOrigin(c *neededClaim) (origin machineconfig.Origin, recorded bool) {
	if c.found == nil {
		return machineconfig.OriginVMOP, false
	}
	switch o := machineconfig.Origin(c.found.Annotations[names.AnnotationOrigin]); {
	case o == machineconfig.OriginVMOP, o == machineconfig.OriginVMOperator:
		return o, true
	case !d.ours(c.found):
		return machineconfig.OriginVMOP, false // an administrator prepared it
	case c.legacy, d.s.ConfigMap == nil, !d.ours(d.s.ConfigMap):
		return machineconfig.OriginVMOperator, false
	case d.s.ConfigMap.Annotations[names.AnnotationApplied] != "":
		return machineconfig.OriginVMOP, false // by a version of it that did not note this
	}
	return machineconfig.OriginVMOperator, false
}
