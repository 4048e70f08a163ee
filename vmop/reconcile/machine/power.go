package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Verb is what a request asks for ([names.AnnotationPowerRequest]).
type Verb string

// The verbs of requests.
const (
	VerbStart   Verb = "start"
	VerbStop    Verb = "stop"
	VerbRestart Verb = "restart"
)

// Request returns the value of the annotation for a request. unique, such as the time,
// distinguishes it from the request before.
func Request(v Verb, unique string) string { return string(v) + " " + unique }

func verbOf(request string) Verb {
	word, _, _ := strings.Cut(request, " ")
	switch v := Verb(word); v {
	case VerbStart, VerbStop, VerbRestart:
		return v
	}
	return ""
}

// Answered reports whether the operator has acted on the run policy of a machine, if it has one,
// and on the last request.
func Answered(vm *spec.VirtualMachine) bool {
	p := vm.Status.Power
	return vm.Spec.RunPolicy == "" || p != nil && p.Policy == vm.Spec.RunPolicy && p.Request == vm.Annotations[names.AnnotationPowerRequest]
}

// Restarted reports whether a pod was made after the last request to restart its machine.
func Restarted(vm *spec.VirtualMachine, pod *corev1.Pod) bool {
	return pod.Annotations[names.AnnotationPowerRequest] == vm.Annotations[names.AnnotationPowerRequest]
}

// Refusal returns why a machine does not follow a request; empty if it does. It depends on the
// run policy alone, as far as possible.
func Refusal(vm *spec.VirtualMachine, v Verb) string {
	policy := vm.Spec.RunPolicy
	switch {
	case policy == "" && v != VerbRestart:
		return "it has no run policy; set spec.vm.state instead"
	case policy == spec.RunPolicyAlwaysOff, policy == spec.RunPolicyAlwaysOn && v != VerbRestart:
		return fmt.Sprintf("spec.runPolicy is %s; change it to start and stop the machine by hand, which Manual and AlwaysOnUnlessStoppedManually allow", policy)
	case v == VerbRestart && !vm.ShouldRun():
		return "the machine is stopped; start it"
	}
	return ""
}

// powerFacts are the events that run policies have rules for.
type powerFacts struct {
	// known: the operator has observed the machine before; stopped: it was stopped then.
	known, stopped bool
	// exists: there is a pod of it.
	exists bool
	// request is the last one.
	request string
	// cause is why the machine has ended, if not yet taken into account.
	cause runnerconfig.Cause
	// deleted: another client deletes, or has deleted, the pod in which the guest executed.
	deleted bool
}

// nextPower applies the rules of all run policies; old is nil for a machine that had none. Each
// request is answered once.
func nextPower(policy spec.RunPolicy, old *spec.Power, f powerFacts) spec.Power {
	var p spec.Power
	to := func(state spec.MachineState, reason string) {
		p.State, p.Reason, p.PodUID = state, reason, "" // what was before no longer counts
	}
	if old != nil {
		p = *old
	}
	switch {
	case p.Policy != "":
	case f.known || f.exists:
		// A machine that gets a policy keeps its state, but for what the policy says below.
		p.Policy = policy
		if to(spec.StateRunning, spec.PowerPolicy); !f.exists && f.stopped {
			to(spec.StateStopped, spec.PowerPolicy)
		}
	default:
		p.Policy = policy
		if to(spec.StateStopped, spec.PowerPolicy); policy == spec.RunPolicyAlwaysOnUnlessStoppedManually {
			to(spec.StateRunning, spec.PowerPolicy)
		}
	}
	// A request made while the machine ends is not about that end.
	if asked := f.request != p.Request && verbOf(f.request) != ""; p.State == spec.StateRunning && !asked {
		switch byHand := policy == spec.RunPolicyManual; {
		case f.cause == runnerconfig.CauseGuestShutdown && policy != spec.RunPolicyAlwaysOn:
			to(spec.StateStopped, spec.PowerGuestShutdown)
		case byHand && f.cause != "" && f.cause != runnerconfig.CauseGuestReset:
			to(spec.StateStopped, spec.PowerMachineEnded)
		case byHand && f.deleted && f.cause == "": // otherwise it had ended before
			to(spec.StateStopped, spec.PowerPodDeleted)
		}
	}
	if former := p.Policy; former != policy {
		p.Policy = policy
		if former == spec.RunPolicyAlwaysOff && policy == spec.RunPolicyAlwaysOnUnlessStoppedManually {
			to(spec.StateRunning, spec.PowerPolicy)
		}
	}
	switch policy {
	case spec.RunPolicyAlwaysOn:
		if p.State != spec.StateRunning {
			to(spec.StateRunning, spec.PowerPolicy)
		}
	case spec.RunPolicyAlwaysOff:
		if p.State != spec.StateStopped || p.Reason != spec.PowerPolicy {
			to(spec.StateStopped, spec.PowerPolicy)
		}
	default:
		if f.request == p.Request {
			break
		}
		switch verbOf(f.request) {
		case VerbStart:
			to(spec.StateRunning, spec.PowerRequested)
		case VerbStop:
			to(spec.StateStopped, spec.PowerRequested)
		}
	}
	p.Request = f.request
	return p
}

// findPower determines whether the machine should run. The outcome of its run policy is written
// to the status together with its causes, before any action that would erase them.
func (d *decision) findPower() {
	policy, old, request := d.vm.Spec.RunPolicy, d.stored.Power, d.s.VM.Annotations[names.AnnotationPowerRequest]
	if policy == "" {
		if d.on = d.vm.Spec.VM.State == spec.StateRunning; old != nil {
			// A former request does not apply again with a later policy.
			p := *old
			p.Policy, p.State, p.Reason, p.Request, p.PodUID = "", d.vm.Spec.VM.State, spec.PowerPolicy, request, ""
			d.powered = &p
		}
		if s := d.vm.Spec.VM.State; s != spec.StateRunning && s != spec.StateStopped {
			d.on = d.pod.exists() // nothing changes until it is corrected
		}
		return
	}
	if !knownPolicy(policy) || d.s.VM.DeletionTimestamp != nil {
		// Nothing changes until the policy is corrected, or at all for a machine that is being
		// deleted.
		d.powered, d.on = old, d.pod.exists()
		if old != nil {
			d.on = old.State == spec.StateRunning
		}
		return
	}
	p := nextPower(policy, old, powerFacts{
		known: d.stored.Phase != "", exists: d.pod.exists() || d.pod.state == podOrphaned && d.disagrees() == "",
		stopped: d.stored.Phase == spec.PhaseStopped || d.stored.Phase == spec.PhaseStopping,
		request: request, cause: d.unnotedCause(), deleted: d.podDeleted(),
	})
	if old == nil || p.State != old.State || p.Reason != old.Reason || p.Request != old.Request && verbOf(p.Request) == VerbStart {
		p.Since.Time = d.s.Now.UTC().Truncate(time.Second)
	}
	d.powered, d.on = &p, p.State == spec.StateRunning
	if request != "" && (old == nil || request != old.Request) {
		d.answer(verbOf(request))
	}
}

// unanswered reports whether the machine runs from now on for a reason not yet in the status: a
// request to start, or another policy. If its pod were created first and ended before the reason
// was written, the reason would start the machine once more.
func (d *decision) unanswered() bool {
	p, old := d.powered, d.stored.Power
	if p == nil || p.Policy == "" {
		return false
	}
	if verbOf(p.Request) == VerbStart && (old == nil || old.Request != p.Request) {
		return true
	}
	return old != nil && old.State != p.State
}

func knownPolicy(p spec.RunPolicy) bool {
	switch p {
	case spec.RunPolicyAlwaysOn, spec.RunPolicyAlwaysOff, spec.RunPolicyManual, spec.RunPolicyAlwaysOnUnlessStoppedManually:
		return true
	}
	return false
}

func (d *decision) answer(v Verb) {
	note := Refusal(&spec.VirtualMachine{Spec: d.vm.Spec, Status: spec.VirtualMachineStatus{Power: d.powered}}, v)
	switch {
	case v == "":
		note = "the annotation " + names.AnnotationPowerRequest + " begins with none of start, stop and restart; nothing is done"
	case note == "":
		return
	default:
		note = fmt.Sprintf("%s was asked for and is not done: %s", v, note)
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: reasonRequestRefused, Action: actionRun, Note: note})
}

// unnotedCause returns why the machine has ended, if that is not in the status yet: from its pod,
// or, where the pod was deleted or is about to be, from its runner's report.
func (d *decision) unnotedCause() runnerconfig.Cause {
	if d.pod.state == podFinished {
		if e := d.stored.LastEnd; e == nil || e.PodUID != d.pod.pod.UID {
			return runnerconfig.Cause(d.pod.ended(d.s.Now).cause)
		}
		return ""
	}
	if d.lostEnd() {
		return runnerconfig.Cause(d.stored.RunnerEnd.Cause)
	}
	return ""
}

// lostEnd reports whether the machine has ended by itself, in a pod that no longer shows it.
func (d *decision) lostEnd() bool {
	uid, e := d.executedIn(), d.stored.RunnerEnd
	if uid == "" || e == nil || d.stored.LastEnd != nil && d.stored.LastEnd.PodUID == uid {
		return false
	}
	switch runnerconfig.Cause(e.Cause) {
	case runnerconfig.CauseRequested, runnerconfig.CauseForced:
		return false // another client has deleted the pod
	}
	switch d.pod.state {
	case podAbsent, podForeign, podOrphaned:
		return true
	case podTerminating:
		return d.pod.pod.UID == uid
	case podPending, podRunning:
		// This pod was made without knowledge of the end, and its runner, which withdraws the
		// former report, has not reported yet.
		return d.pod.pod.UID != uid
	}
	return false
}

func (d *decision) executedIn() types.UID {
	if d.stored.Power == nil || d.vm.Spec.RunPolicy == "" {
		return ""
	}
	return d.stored.Power.PodUID
}

// podDeleted reports whether the pod in which the guest executed is being or was deleted by
// another client.
func (d *decision) podDeleted() bool {
	uid := d.executedIn()
	switch d.pod.state {
	case podTerminating:
		return uid == d.pod.pod.UID
	case podAbsent:
		return uid != "" && !d.unsure()
	case podForeign, podOrphaned:
		return uid != ""
	}
	return false
}

// executesIn notes the pod in which the guest executes, unless that is to be replaced: a deletion
// from then on is another client's.
func (d *decision) executesIn() {
	p := d.powered
	switch {
	case p == nil || p.Policy == "" || d.s.VM.DeletionTimestamp != nil:
	case !d.on || d.restarts || d.pod.state == podFinished:
		// The cause of its end is noted with this.
		p.PodUID = ""
	case d.pod.state == podRunning && d.executing():
		p.PodUID = d.pod.pod.UID
	case d.pod.state == podPending && d.pod.pod.UID != p.PodUID, d.pod.state == podAbsent && !d.unsure():
		p.PodUID = ""
	}
}

func (d *decision) stoppedBecause() string {
	p := d.powered
	if p == nil || p.Policy == "" {
		return "spec.vm.state is Stopped"
	}
	why := map[string]string{
		spec.PowerRequested:     "somebody has stopped the machine",
		spec.PowerGuestShutdown: "the guest has powered itself off",
		spec.PowerMachineEnded:  "the machine has ended",
		spec.PowerPodDeleted:    "somebody has deleted the machine's pod",
	}[p.Reason]
	if why == "" {
		return "spec.runPolicy is " + string(p.Policy)
	}
	if e := d.end; p.Reason == spec.PowerMachineEnded && e != nil {
		why += ": " + e.Cause + ": " + strings.TrimSuffix(e.Message, ".")
	}
	return why + ", and spec.runPolicy is " + string(p.Policy)
}
