package machine

import (
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// executing reports whether the runner reports that its guest executes, and the node that the
// runner does.
func (d *decision) executing() bool {
	return d.pod.state == podRunning && !d.pod.silent() && d.reportedRunning() && !d.paused()
}

func (d *decision) reportedRunning() bool {
	c := spec.FindCondition(d.stored.Conditions, spec.ConditionRunning)
	return c != nil && (c.Status == metav1.ConditionTrue || c.Status == metav1.ConditionUnknown && c.Reason == spec.ReasonNodeLost)
}

func (d *decision) paused() bool {
	c := spec.FindCondition(d.stored.Conditions, spec.ConditionGuestExecuting)
	return c != nil && (c.Status == metav1.ConditionFalse || c.Reason == spec.ReasonQEMUNotResponding) && d.reportedRunning()
}

// failed reports whether an error keeps the guest from executing. A full disk is none: the guest
// continues when there is space.
func (d *decision) failed() bool {
	c := spec.FindCondition(d.stored.Conditions, spec.ConditionGuestExecuting)
	if c == nil {
		return false
	}
	switch c.Reason {
	case spec.ReasonDiskError, spec.ReasonGuestPanicked, spec.ReasonWatchdog, spec.ReasonInternalError, spec.ReasonQEMUNotResponding:
		return true
	}
	return false
}

// reportedLate reports whether the conditions of a machine that should not run are about an
// earlier specification, the last that a runner saw. Clients such as kubectl wait need conditions
// of the present one.
func (d *decision) reportedLate() bool {
	if d.wanted() || d.pod.state != podAbsent {
		return false
	}
	for _, t := range spec.ConditionTypes() {
		if c := spec.FindCondition(d.stored.Conditions, t); c != nil && c.ObservedGeneration < d.s.VM.Generation {
			return true
		}
	}
	return false
}

// lastReportDue reports whether the pod of a machine that should stop has ended, and its runner's
// last report was not observed yet. The two are observed independently of each other, and the
// report precedes the end of the pod.
func (d *decision) lastReportDue() bool {
	return !d.wanted() && d.s.VM.DeletionTimestamp == nil && (d.pod.state == podAbsent || d.pod.state == podFinished) &&
		d.stored.Phase != spec.PhaseStopped && !reportsStopped(d.shown)
}

// lastWords reports whether a runner has reported all conditions as stopped. If it did not know
// the specification that it was stopped for, the operator's report has that, see inRunnersPlace:
// most stops end like this, and it saves a write.
func (d *decision) lastWords() bool {
	return reportsStopped(d.shown) && !slices.ContainsFunc(spec.ConditionTypes(), func(t string) bool {
		c := spec.FindCondition(d.stored.Conditions, t)
		return c == nil || c.Reason != spec.ReasonVMStopped
	})
}

// reportedStopped reports whether the runner's part of the status is that of a machine that does
// not run. What a guest reported of itself may remain.
func (d *decision) reportedStopped() bool { return reportsStopped(d.stored) }

// unsure reports whether the pod may exist without having been observed yet, because the status
// has only just become running.
func (d *decision) unsure() bool {
	r := spec.FindCondition(d.shown.Conditions, spec.ConditionRunning)
	if r == nil || r.Status != metav1.ConditionTrue || d.pod.state != podAbsent {
		return false
	}
	// A report from far in the future does not show when it was made.
	return d.s.Now.Before(r.LastTransitionTime.Add(lag)) && !r.LastTransitionTime.After(d.s.Now.Add(lag))
}

func reportsStopped(s *spec.VirtualMachineStatus) bool {
	if s.CPUs != 0 || s.RAM != nil && !s.RAM.IsZero() || s.LoggedInUser != "" || s.ConsoleClient != "" || s.RunnerVersion != "" {
		return false
	}
	for _, t := range spec.ConditionTypes() {
		if c := spec.FindCondition(s.Conditions, t); c != nil && c.Status != metav1.ConditionFalse {
			return false
		}
	}
	if c := spec.FindCondition(s.Conditions, spec.ConditionRunning); c != nil {
		return c.Reason == spec.ReasonVMStopped || c.Reason == spec.ReasonCreation
	}
	return true
}

// lag is how long an observation of a pod may be behind that of its machine. A machine reported
// as running is believed for that long, even without a visible pod.
const lag = 30 * time.Second
