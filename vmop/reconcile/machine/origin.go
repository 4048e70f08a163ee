package machine

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
)

// recordOrigin records who created the machine, once, on the claim with the runner's data:
// firmware variables and disks depend on it, and like them it outlives machine and ConfigMap. It
// reports whether that is settled. A ConfigMap of VM-Operator, which identifies it, is not
// written before the record is observed: the two are not observed at the same time.
func (d *decision) recordOrigin() bool {
	c := d.runnerData()
	origin, recorded := d.findOrigin(c)
	d.origin = origin
	if cm := d.s.ConfigMap; cm != nil && cm.Annotations[names.AnnotationApplied] == "" && !recorded && (c.found == nil || c.found.DeletionTimestamp != nil) {
		d.unmade = true
		return false // the claim may come back without the record; a new one is created first
	}
	if recorded || c.found == nil || c.legacy || !d.mine(c.found) || c.found.DeletionTimestamp != nil {
		return true // a former name means VM-Operator in any case
	}
	d.do(reconcile.UpdateClaim{
		Name: c.name, UID: c.found.UID, ResourceVersion: c.found.ResourceVersion,
		Annotations: map[string]string{names.AnnotationOrigin: string(origin)},
	}, &d.devices)
	d.unmade = true
	return false
}

// findOrigin determines who created the machine. VM-Operator leaves a claim with its labels, and
// perhaps a ConfigMap not written by vmop.
func (d *decision) findOrigin(c *neededClaim) (origin machineconfig.Origin, recorded bool) {
	if c.found == nil {
		return machineconfig.OriginVMOP, false
	}
	switch o := machineconfig.Origin(c.found.Annotations[names.AnnotationOrigin]); {
	case o == machineconfig.OriginVMOP, o == machineconfig.OriginVMOperator:
		return o, true
	case !d.ours(c.found):
		return machineconfig.OriginVMOP, false // prepared by an administrator
	case c.legacy, d.s.ConfigMap == nil, !d.ours(d.s.ConfigMap):
		return machineconfig.OriginVMOperator, false
	case d.s.ConfigMap.Annotations[names.AnnotationApplied] != "":
		return machineconfig.OriginVMOP, false // by a version that did not record this
	}
	return machineconfig.OriginVMOperator, false
}
