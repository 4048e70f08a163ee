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

// restartDelay is the delay of a restart after a first failure.
const restartDelay = 10 * time.Second

// steadyRun is how long a machine must have run for its former failures to be forgotten, as with
// the kubelet.
const steadyRun = 10 * time.Minute

// endIsNoted waits until the status has the end of a machine whose pod no longer exists.
func (d *decision) endIsNoted() {
	d.running.setWaiting(spec.ReasonPodNotFound, named(names.KindPod, d.nextPod()), "the end of the former pod %s is being noted; the machine is started again then", d.nextPod())
}

func (d *decision) note() {
	e, former := d.pod.ended(d.s.Now), d.stored.LastEnd
	d.explainOOM(&e)
	d.end = &spec.MachineEnd{
		PodUID: d.pod.pod.UID, Cause: e.cause, Message: spec.BoundedMessage(e.message), QEMUStatus: e.qemuStatus,
		Time: metav1.NewTime(e.at.Truncate(time.Second)), ObservedGeneration: d.s.VM.Generation,
	}
	final := !d.wanted() || d.vm.Spec.RunPolicy == "" && e.cause == string(runnerconfig.CauseGuestShutdown) && d.vm.Spec.GuestShutdownStops
	// A guest that reset itself to apply waiting changes is started without a delay.
	renewed := e.cause == string(runnerconfig.CauseGuestReset)
	if e.failure || e.ran < shortRun && !final && !renewed {
		d.countFailure(former, e.ran)
	}
	kind, next := corev1.EventTypeNormal, "the machine is started again"
	if e.failure { // a guest that powers itself off soon after its start is only delayed
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

// countFailure counts an end as a failure, in a row with the former end if the machine has not
// run steadily in between.
func (d *decision) countFailure(former *spec.MachineEnd, ran time.Duration) {
	d.end.Failures = 1
	if former != nil && former.ObservedGeneration == d.s.VM.Generation && ran < steadyRun {
		d.end.Failures += former.Failures
	}
}

// stops reports whether an end means that the machine should not run any more. The generation
// shows whether the specification was changed since.
func (d *decision) stops(e *spec.MachineEnd) bool {
	return d.vm.Spec.RunPolicy == "" && e != nil && e.Cause == string(runnerconfig.CauseGuestShutdown) && d.vm.Spec.GuestShutdownStops &&
		e.ObservedGeneration == d.s.VM.Generation
}

func (d *decision) poweredOff() bool {
	return d.pod.state == podFinished && d.stops(d.end) && d.pod.ended(d.s.Now).cause == string(runnerconfig.CauseGuestShutdown)
}

// noteLost records the machine's end as its runner reported it, if its pod no longer shows it. It
// reports whether it has something to record.
//
// A failure the runner reported counts like one its pod shows: a client that deletes ended pods
// must not turn a machine that crashes into one that crashes without a delay. A pod for which no
// runner reported an end is not a failure: it was deleted, which restarts the machine at once, or
// its node died, and the machine may well run elsewhere. Repeated evictions and OOM kills by the
// kubelet leave the pod, and count.
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
		// How long it ran is not known: at most since it was allowed to start.
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

// noteDisruption records which part of Kubernetes ends a machine that should run, and why: an
// eviction, a preemption, a taint. The pod does not show it later.
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

// delayed reports whether it is too early to start the machine after a failure, unless a user has
// requested a start since.
func (d *decision) delayed() bool {
	e := d.end
	if e == nil || e.Failures == 0 || e.ObservedGeneration != d.s.VM.Generation {
		return false
	}
	if p := d.powered; p != nil && p.Policy != "" && p.Reason == spec.PowerRequested && e.Time.Before(&p.Since) {
		return false
	}
	again := d.startAgain()
	// An end in the future was written by a clock that has been corrected since.
	if !d.s.Now.Before(again) || e.Time.After(d.s.Now) {
		return false
	}
	d.wakeAt(again)
	// The event about the end reports the delay, too.
	d.running.setFalse(spec.ReasonRestartDelayed, "the machine ended: %s: %s (failures in a row: %d); it is started again at %s, or as soon as its specification changes",
		e.Cause, e.Message, e.Failures, again.Format(time.RFC3339))
	return true
}

func (d *decision) startAgain() time.Time {
	return d.end.Time.Add(reconcile.Backoff(restartDelay, int(d.end.Failures))).UTC()
}
