package machine

import (
	"github.com/vmop/sdk/vmop/reconcile"
)

// do adds an action to the plan. If the API server has refused the same write, it is retried
// after a growing delay only; until then do returns false, and the finding has the reason.
func (d *decision) do(a reconcile.Action, about *finding) bool {
	f := reconcile.Refused(d.s.Failures, a.Target(), d.s.Now)
	if _, makes := a.(reconcile.Create); makes && f == nil {
		f = d.namespaceGoes()
	}
	if f != nil {
		d.refused(f, about)
		d.wakeAt(f.RetryAt())
		return false
	}
	d.plan.Actions = append(d.plan.Actions, a)
	return true
}

// namespaceGoes returns a refusal because the namespace is being deleted, which holds for all
// objects to be created in it; or nil.
func (d *decision) namespaceGoes() *reconcile.Failure {
	for i := range d.s.Failures {
		if f := &d.s.Failures[i]; f.NamespaceGoes && d.s.Now.Before(f.RetryAt()) {
			return f
		}
	}
	return nil
}
