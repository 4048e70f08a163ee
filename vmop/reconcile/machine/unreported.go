package machine

import (
	"fmt"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// StatusTarget is what the write of a machine's status is called in a
// [reconcile.Failure].
func StatusTarget(name string) reconcile.Target {
	return reconcile.Target{Verb: "patch", Kind: names.KindVirtualMachine + "/status", Name: name}
}

// Unreported decides about a plan whose status the API server has refused, as it
// does where something that is stored breaks a rule of the definition that it
// cannot overlook. What the status would have said, and why it does not, is told
// by events: once, and again if the refusal is another one. The status is tried
// again after pauses that grow.
//
// The failure is the refusal, before is the one before it since the status was
// written last, nil if there was none.
func Unreported(plan reconcile.Plan, before *reconcile.Failure, f reconcile.Failure) reconcile.Plan {
	out := reconcile.Plan{Wake: reconcile.Earlier(plan.Wake, f.RetryAt())}
	if before == nil || before.Message != f.Message {
		out.Events = append(out.Events, plan.Events...)
		out.Events = append(out.Events, reconcile.Event{
			Type: corev1.EventTypeWarning, Reason: spec.ReasonWriteRefused, Action: "Reconcile",
			Note: fmt.Sprintf("the API server refuses the status, which says nothing of the machine until this is corrected: %s", f.Message),
		})
	}
	return out
}
