package disk

import (
	"slices"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
)

// Decide is total and deterministic: equal snapshots give equal plans, and the snapshot is not
// changed. Without a disk there is nothing to do.
func Decide(s Snapshot) reconcile.Plan {
	subject := subjectOf(&s)
	if subject.object == nil {
		return reconcile.Plan{}
	}
	d := &decision{s: &s, subject: subject, next: *subject.disk.Status.DeepCopy()}
	d.next.ObservedGeneration = d.disk.Generation
	d.attachments()
	if percentOf(d.next.Progress) == 100 && !(d.isFilled() && d.mine(d.s.Claim)) {
		d.next.Progress = "" // its claim no longer exists
	}
	if d.disk.DeletionTimestamp != nil {
		d.deleted()
	} else {
		d.alive()
		d.download()
	}
	d.serve()
	if d.gone {
		return d.plan // released, it has no status, and its claim may have been deleted
	}
	if next, changed := d.status(); changed {
		d.plan.Statuses = []reconcile.StatusApply{reconcile.StatusOf(d.kind, d.object, names.OperatorStatusManager, next)}
	}
	return d.plan
}

func (d *decision) alive() {
	if d.s.Unreadable != "" {
		d.fail(conditions.ReasonInvalidSpecification, "%s; correct it", d.s.Unreadable)
		return
	}
	if errs := d.validate(); len(errs) > 0 {
		d.fail(conditions.ReasonInvalidSpecification, "%v", errs.ToAggregate())
		return
	}
	if !d.held() {
		d.wait(conditions.ReasonDiskProvisioning, "claim %s is about to be made", d.claimName)
		d.do(reconcile.SetFinalizers{
			Kind: d.kind, Name: d.disk.Name, UID: d.disk.UID, ResourceVersion: d.disk.ResourceVersion,
			Finalizers: append(slices.Clone(d.disk.Finalizers), d.finalizer),
		})
		return
	}
	if d.claim() && d.content() {
		d.ready()
	}
	d.size()
}
