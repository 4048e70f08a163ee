package machine

import (
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restartDelay is how long a machine that has failed once is not started again.
const restartDelay = 10 * time.Second

// steadyRun is how long a machine must have run for its failures before to
// be forgotten, as the kubelet forgets them.
const steadyRun = 10 * time.Minute

// endIsNoted is what a machine waits for whose pod is gone, and whose status does not
// say so yet.
func (d *decision) endIsNoted() {
	d.running.setWaiting(spec.ReasonPodNotFound, named(names.KindPod, d.nextPod()), "the end of the former pod %s is being noted; the machine is started again then", d.nextPod())
}

// note makes the record of an end.
func (d *decision) note() {
	e, former := d.pod.ended(d.s.Now), d.stored.LastEnd
	d.explainOOM(&e)
	d.end = &spec.MachineEnd{
		PodUID: d.pod.pod.UID, Cause: e.cause, Message: spec.BoundedMessage(e.message), QEMUStatus: e.qemuStatus,
		Time: metav1.NewTime(e.at.Truncate(time.Second)), ObservedGeneration: d.s.VM.Generation,
	}
	final := !d.wanted() || d.vm.Spec.RunPolicy == "" && e.cause == string(runnerconfig.CauseGuestShutdown) && d.vm.Spec.GuestShutdownStops
	// A guest that has reset itself for what waited has nothing to wait for then.
	renewed := e.cause == string(runnerconfig.CauseGuestReset)
	if e.failure || e.ran < shortRun && !final && !renewed {
		d.countFailure(former, e.ran)
	}
	kind, next := corev1.EventTypeNormal, "the machine is started again"
	if e.failure { // and not a guest that powers itself off soon after its start, which is only delayed
		kind = corev1.EventTypeWarning
	}
	if d.end.Failures > 0 {
		next = "the machine is started again at " + d.startAgain().Format(time.RFC3339) + ", or as soon as its specification changes"
	}
	if final {
		next = "the machine stays stopped"
	}
	if e.advice != "" {
		next = e.advice + "; " + next
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{Type: kind, Reason: camel(e.cause), Action: actionRun, Note: e.message + "; " + next})
}

// countFailure counts an end as a failure, in a row with the end before it if the machine
// has not run steadily in between.
func (d *decision) countFailure(former *spec.MachineEnd, ran time.Duration) {
	d.end.Failures = 1
	if former != nil && former.ObservedGeneration == d.s.VM.Generation && ran < steadyRun {
		d.end.Failures += former.Failures
	}
}

// stops reports whether an end means that the machine should not run any more. The generation shows
// whether the specification was changed since.
func (d *decision) stops(e *spec.MachineEnd) bool {
	return d.vm.Spec.RunPolicy == "" && e != nil && e.Cause == string(runnerconfig.CauseGuestShutdown) && d.vm.Spec.GuestShutdownStops &&
		e.ObservedGeneration == d.s.VM.Generation
}

// poweredOff reports whether there is a pod that has ended because its guest powered
// itself off, for good.
func (d *decision) poweredOff() bool {
	return d.pod.state == podFinished && d.stops(d.end) && d.pod.ended(d.s.Now).cause == string(runnerconfig.CauseGuestShutdown)
}

// noteLost records how the machine has ended, by its runner's word, if its pod does
// not tell so any more. It reports whether it has something to record.
//
// A failure that the runner has told counts as one that its pod tells: whatever takes
// pods that have ended away must not turn a machine that crashes into one that crashes
// without a delay. A pod of which no runner has told an end is none of the machine's
// failures: somebody has deleted it, which restarts the machine at once, or its node has
// died, and elsewhere the machine may well run. What the kubelet ends again and again, an
// eviction or the OOM killer, is told by the pod, which it leaves, and counts.
func (d *decision) noteLost() bool {
	if !d.lostEnd() {
		return false
	}
	e, former := d.stored.RunnerEnd, d.stored.LastEnd
	d.end = &spec.MachineEnd{
		PodUID: d.executedIn(), Cause: e.Cause, Message: e.Message, QEMUStatus: e.QEMUStatus,
		Time: metav1.NewTime(d.s.Now.Truncate(time.Second)), ObservedGeneration: d.s.VM.Generation,
	}
	kind := corev1.EventTypeNormal
	if runnerconfig.Cause(e.Cause).Failure() {
		// Nobody tells how long it has run: at most as long as it was allowed to since.
		var ran time.Duration
		if former != nil {
			ran = d.s.Now.Sub(former.Time.Add(reconcile.Backoff(restartDelay, int(former.Failures))))
		}
		d.countFailure(former, ran)
		kind = corev1.EventTypeWarning
	}
	next := "the machine is started again"
	if !d.wanted() {
		next = "the machine stays stopped"
	} else if d.end.Failures > 0 {
		next += " at " + d.startAgain().Format(time.RFC3339) + ", or as soon as its specification changes"
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{Type: kind, Reason: camel(e.Cause), Action: actionRun, Note: e.Message + "; " + next})
	return true
}

// noteDisruption records who ends a machine that should run, and why, if that is
// Kubernetes: an eviction, a preemption, a taint. Of the pod nothing tells it later.
func (d *decision) noteDisruption() {
	c := d.pod.disruption()
	if c == nil || !d.wanted() || d.s.VM.DeletionTimestamp != nil || d.stored.LastEnd != nil && d.stored.LastEnd.PodUID == d.pod.pod.UID {
		return
	}
	d.end = &spec.MachineEnd{
		PodUID: d.pod.pod.UID, Cause: c.Reason, Message: c.Message,
		Time: metav1.NewTime(d.s.Now.Truncate(time.Second)), ObservedGeneration: d.s.VM.Generation,
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{
		Type: corev1.EventTypeNormal, Reason: camel(c.Reason), Action: "Run", Note: c.Message + "; the machine is started again when its pod is gone and a node takes it",
	})
}

// delayed reports whether it is too early to start the machine after a failure. It is not if a user
// has asked for a start since.
func (d *decision) delayed() bool {
	e := d.end
	if e == nil || e.Failures == 0 || e.ObservedGeneration != d.s.VM.Generation {
		return false
	}
	if p := d.powered; p != nil && p.Policy != "" && p.Reason == spec.PowerRequested && e.Time.Before(&p.Since) {
		return false
	}
	again := d.startAgain()
	// An end later than now was written by a clock that has been corrected since.
	if !d.s.Now.Before(again) || e.Time.After(d.s.Now) {
		return false
	}
	d.wakeAt(again)
	// The event that tells of the end tells of the delay, too.
	d.running.setFalse(spec.ReasonRestartDelayed, "the machine ended: %s: %s (failures in a row: %d); it is started again at %s, or as soon as its specification changes",
		e.Cause, e.Message, e.Failures, again.Format(time.RFC3339))
	return true
}

// startAgain is when a machine is started again that has ended.
func (d *decision) startAgain() time.Time {
	return d.end.Time.Add(reconcile.Backoff(restartDelay, int(d.end.Failures))).UTC()
}
