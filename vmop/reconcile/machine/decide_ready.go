package machine

import (
	"cmp"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readiness sums up the findings: whether the guest executes, and if not, the reason that matters
// most. A wait is reported by the condition it belongs to.
func (d *decision) readiness() finding {
	because := func(status metav1.ConditionStatus, f finding) finding {
		return finding{status: status, reason: f.reason, message: f.message}
	}
	switch {
	case d.lost():
		return because(metav1.ConditionUnknown, d.running)
	case d.s.VM.DeletionTimestamp != nil:
		return because(metav1.ConditionFalse, d.configuration)
	case d.executing():
		return finding{status: metav1.ConditionTrue, reason: spec.ReasonRunning, message: "the guest executes"}
	case d.pod.state == podRunning && d.paused():
		c := spec.FindCondition(d.stored.Conditions, spec.ConditionGuestExecuting)
		return finding{status: metav1.ConditionFalse, reason: c.Reason, message: c.Message}
	case d.running.ok() && d.runnerUnbelieved():
		f := finding{status: metav1.ConditionUnknown, reason: spec.ReasonStatusOfOthers, object: d.machine(), warning: true}
		f.message = "what the status says of the guest was not written by the machine's runner (" + cmp.Or(d.s.Authors.strangers(), "nobody says who did") + "), and is not believed until the runner reports again"
		return f
	case d.running.ok() && d.endsByItself():
		return finding{status: metav1.ConditionFalse, reason: spec.ReasonVMStopped, message: "the guest has ended, and pod " + d.pod.pod.Name + " is about to"}
	case d.running.ok():
		return finding{status: metav1.ConditionFalse, reason: spec.ReasonStarting, message: "the pod runs, and its runner prepares the machine"}
	}
	return because(metav1.ConditionFalse, d.running)
}

// endsByItself reports whether the runner of a running pod has reported the end of its guest. The
// report of a former pod is older than the container.
func (d *decision) endsByItself() bool {
	c := d.pod.container
	reported := spec.FindCondition(d.stored.Conditions, spec.ConditionRunning)
	return d.stored.RunnerEnd != nil && reported != nil && reported.Status == metav1.ConditionFalse && c != nil &&
		(c.State.Terminated != nil || c.State.Running != nil && reported.LastTransitionTime.After(c.State.Running.StartedAt.Time))
}

// runnerUnbelieved reports whether another writer than the runner has set the runner's
// conditions.
func (d *decision) runnerUnbelieved() bool {
	for _, t := range []string{spec.ConditionRunning, spec.ConditionGuestExecuting} {
		if spec.FindCondition(d.shown.Conditions, t) != nil && spec.FindCondition(d.stored.Conditions, t) == nil {
			return true
		}
	}
	return false
}

// inRunnersPlace returns the conditions that the runner should have reported and could not. Those
// of a machine that has never run are dated 1970 by the definition, and on a node that does not
// report True becomes unknown. False stays: a runner with nothing new would not report it again
// when the node returns. A runner stopped because of a new specification did not know that one.
func (d *decision) inRunnersPlace(now metav1.Time) []spec.Condition {
	conditions := d.stored.Conditions
	for i := range d.stored.Conditions {
		c := d.stored.Conditions[i]
		if c.Reason == spec.ReasonCreation && c.LastTransitionTime.Unix() <= 0 {
			since := d.s.VM.CreationTimestamp
			if since.IsZero() {
				since = now
			}
			c.LastTransitionTime = since
			conditions = spec.WithCondition(conditions, c)
		}
	}
	if d.reportedLate() && d.lastWords() {
		for _, t := range spec.ConditionTypes() {
			if c := spec.FindCondition(conditions, t); c != nil && c.ObservedGeneration < d.s.VM.Generation {
				next := *c
				next.ObservedGeneration = d.s.VM.Generation
				conditions = spec.WithCondition(conditions, next)
			}
		}
	}
	for _, t := range []string{spec.ConditionRunning, spec.ConditionGuestExecuting} {
		c := spec.FindCondition(conditions, t)
		switch {
		case c == nil:
		case d.lost() && c.Status == metav1.ConditionTrue:
			conditions = spec.WithCondition(conditions, spec.Condition{
				Type: t, Status: metav1.ConditionUnknown, Reason: spec.ReasonNodeLost, ObservedGeneration: c.ObservedGeneration,
				Message: "node " + d.pod.pod.Spec.NodeName + " does not report, and the machine may still run there", LastTransitionTime: now,
			})
		case !d.lost() && d.pod.state == podRunning && c.Status == metav1.ConditionUnknown && c.Reason == spec.ReasonNodeLost:
			conditions = spec.WithCondition(conditions, spec.Condition{
				Type: t, Status: metav1.ConditionTrue, Reason: spec.ReasonNodeReturned, ObservedGeneration: c.ObservedGeneration,
				Message: "node " + d.pod.pod.Spec.NodeName + " reports again", LastTransitionTime: now,
			})
		case t == spec.ConditionGuestExecuting && !d.reportedRunning() && (c.Reason == spec.ReasonNodeLost || c.Reason == spec.ReasonNodeReturned):
			// A machine that does not run has no such condition.
			conditions = withoutCondition(conditions, t)
		}
	}
	return conditions
}

// inRunnersName returns the types of the runner's conditions that the operator keeps until the
// runner reports: server-side apply would remove those left out. The version is that of the
// machine the decision was made on, if a report of the runner must not be overwritten. A report
// in the runner's own name, written before this one, has them all.
func (d *decision) inRunnersName(conditions []spec.Condition) (types []string, version string) {
	if d.reportsAsRunner() {
		return nil, ""
	}
	for _, t := range append(spec.ConditionTypes(), spec.ConditionGuestExecuting) {
		c := spec.FindCondition(conditions, t)
		if c == nil {
			continue
		}
		switch c.Reason {
		case spec.ReasonNodeLost, spec.ReasonNodeReturned, spec.ReasonCreation, spec.ReasonVMStopped:
			types, version = append(types, t), d.s.VM.ResourceVersion
		}
	}
	return types, version
}

// reportsAsRunner reports whether the plan has a report in the runner's name, which is bound to
// the observed version of the machine and changes it.
func (d *decision) reportsAsRunner() bool {
	return slices.ContainsFunc(d.plan.Statuses, func(s reconcile.StatusApply) bool { return s.Manager == names.RunnerStatusManager })
}
