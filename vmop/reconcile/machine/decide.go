package machine

import (
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
)

// Decide is total and deterministic: equal snapshots give equal plans, and the snapshot is not
// changed.
//
// A machine that is being deleted and one whose specification is invalid get no new objects. In
// the first case the pod is deleted, and the finalizer removed when it has ended; in the second
// it is left alone, unless the machine should stop.
func Decide(s Snapshot) reconcile.Plan {
	if s.VM == nil || s.Bare && s.VM.DeletionTimestamp == nil {
		return reconcile.Plan{}
	}
	d := begin(&s)
	d.end, d.ranWith = d.stored.LastEnd, d.stored.Claims
	d.findPower()
	if !d.responsible() {
		return d.plan
	}
	switch {
	case s.VM.DeletionTimestamp != nil:
		d.deleted()
	case d.pod.state == podOrphaned:
		d.orphaned()
	case !d.valid() || !d.allowed() || d.unstartable():
		d.hold()
		d.findHeld()
		d.power()
	default:
		d.hold()
		d.findCertificate()
		d.findProvisioning()
		d.findRestart()
		d.judgeImage()
		d.findClaims()
		d.findMounts()
		d.findRepository()
		d.makeSecret()
		d.makeUserData()
		d.findGrant()
		if d.recordOrigin() {
			_ = d.makeConfigMap() // reported by the finding
		}
		d.makeClaims()
		d.findRenewal()
		d.power()
		if !d.invalid {
			// Last what a running machine does not wait for, so that a refusal keeps no machine
			// from running.
			d.annotatePod()
			d.attachDisks()
			d.resize()
			d.judgeLimit()
			d.judgeRunner()
			d.updateClaims()
			d.makeService()
			d.dropUserData()
		}
	}
	d.executesIn()
	d.report()
	return d.plan
}

// unstartable reports whether the machine has no pod and gets none because of its class; nothing
// is created for it then.
func (d *decision) unstartable() bool {
	if !d.unfit() || d.pod.exists() {
		return false
	}
	d.unmade = true
	d.findRestart()
	d.configuration.inherit(d.unfitness())
	return true
}

// deleted handles a machine that is being deleted. Its pod is deleted, and the machine stays
// until that has ended. Other objects go with it by their owner references and must not be
// recreated.
//
// With --cascade=orphan the pod runs on.
func (d *decision) deleted() {
	d.findRestart()
	d.configuration.setFalse(spec.ReasonMachineDeleted, "the machine is being deleted")
	if DeletesDisks(d.s.VM) {
		d.devices.setFalse(spec.ReasonMachineDeleted, "the machine is being deleted, and its volume claims with it when its guest has ended")
	} else {
		d.devices.setFalse(spec.ReasonMachineDeleted, "the machine is being deleted; its volume claims are kept")
	}
	switch {
	case d.leaves():
		d.orphan()
		d.release()
		d.running.setFalse(spec.ReasonMachineDeleted, "the machine is being deleted without its pod")
	case d.pod.state == podTerminating && !finished(d.pod.pod):
		d.terminating()
	case d.pod.state == podPending, d.pod.state == podRunning:
		d.deletePod()
		d.running.setFalse(spec.ReasonPodTerminating, podGoes, d.pod.pod.Name)
	default:
		d.running.setFalse(spec.ReasonMachineDeleted, "the machine is being deleted")
		if d.deleteDisks() {
			d.release()
		}
	}
}
