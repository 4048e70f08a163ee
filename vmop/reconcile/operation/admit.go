package operation

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// admit decides about the operations that have not begun: one begins if none is in progress, the
// others are refused. Whether one is applicable at all comes first, so that an inapplicable one
// takes no other's place.
func (d *decision) admit(active *spec.VirtualMachineOperation, ends bool) {
	begun := ends
	for _, o := range d.all {
		if o == active || o.DeletionTimestamp != nil || o.Status.Phase.Finished() {
			continue
		}
		other := func() {
			d.finish(o, spec.OperationFailed, conditions.ReasonNotReadyToBeExecuted,
				fmt.Sprintf("operation %s (%s) is in progress on machine %s; create another one when it has ended", active.Name, text(active), o.Spec.VirtualMachineName))
		}
		if o.Status.Phase == spec.OperationInProgress {
			other() // another client has written its status
			continue
		}
		r, later := d.refusal(o), d.overtaking(o)
		switch {
		case r.waits:
			d.pending(o, r)
		case r.reason != "":
			d.finish(o, spec.OperationFailed, r.reason, r.message)
		case begun || d.busy && supersedes(o, active):
			// Decided again when the present writes are observed.
			d.plan.WakeAt(d.s.Now.Add(settleRetry))
		case active == nil && later != nil:
			d.finish(o, spec.OperationFailed, conditions.ReasonNotReadyToBeExecuted,
				fmt.Sprintf("operation %s (%s) was created later and has begun before it; create another one", later.Name, text(later)))
		case active == nil:
			d.begin(o)
			begun = true
		case supersedes(o, active):
			d.finish(active, spec.OperationSuperseded, conditions.ReasonSuperseded, fmt.Sprintf("operation %s (%s) has taken its place", o.Name, text(o)))
			begun = true
		default:
			other()
		}
	}
}

// overtaking returns an operation that was created later and has begun, as when the refusal of
// the earlier one was refused itself: what was asked for last would not be so in the end.
func (d *decision) overtaking(o *spec.VirtualMachineOperation) *spec.VirtualMachineOperation {
	for _, other := range d.all {
		if other.Status.StartTime != nil && other.CreationTimestamp.After(o.CreationTimestamp.Time) {
			return other
		}
	}
	return nil
}

type refusal struct {
	// waits: it may change by itself soon.
	waits           bool
	reason, message string
}

func (d *decision) refusal(o *spec.VirtualMachineOperation) refusal {
	no := func(reason, format string, args ...any) refusal {
		return refusal{reason: reason, message: fmt.Sprintf(format, args...)}
	}
	// Wait a moment for what the caches do not show yet.
	yet := func(r refusal) refusal {
		r.waits = d.s.Now.Before(o.CreationTimestamp.Add(settling))
		return r
	}
	t, vm := o.Spec.Type, d.s.Machine
	if errs := spec.ValidateOperation(o); len(errs) > 0 {
		return no(conditions.ReasonInvalidSpecification, "%v", errs.ToAggregate())
	}
	switch {
	case changed(o):
		return no(conditions.ReasonInvalidSpecification, "its specification was changed; create another one")
	case t != spec.OperationStart && t != spec.OperationStop && t != spec.OperationRestart:
		return no(conditions.ReasonTypeNotSupported, "this operator has no operation %s; there are Start, Stop and Restart", t)
	case vm == nil && d.s.Unreadable != "":
		return yet(no(conditions.ReasonNotReadyToBeExecuted, "%s", d.s.Unreadable))
	case vm == nil:
		return yet(no(conditions.ReasonVirtualMachineNotFound, "there is no machine %s in namespace %s", o.Spec.VirtualMachineName, o.Namespace))
	case vm.DeletionTimestamp != nil:
		return no(conditions.ReasonNotApplicableForPhase, "machine %s is being deleted", vm.Name)
	}
	policy := vm.Spec.RunPolicy
	switch policy {
	case spec.RunPolicyAlwaysOff:
		return no(conditions.ReasonNotApplicableForRunPolicy, "%s", machine.Refusal(vm, machine.VerbStart))
	case spec.RunPolicyAlwaysOn:
		if t != spec.OperationRestart {
			return no(conditions.ReasonNotApplicableForRunPolicy, "%s", machine.Refusal(vm, machine.VerbStart))
		}
	}
	phase := vm.Status.Phase
	if phase == "" || policy != "" && (vm.Status.Power == nil || vm.Status.Power.Policy != policy) {
		return yet(no(conditions.ReasonNotReadyToBeExecuted, "the operator has not looked at machine %s, or at its run policy, yet", vm.Name))
	}
	phases := []string{spec.PhaseStopped, spec.PhaseStopping}
	switch t {
	case spec.OperationStop:
		phases = []string{spec.PhaseRunning, spec.PhaseStarting, spec.PhasePaused, spec.PhaseDegraded, spec.PhasePending, spec.PhaseUnknown}
	case spec.OperationRestart:
		phases = []string{spec.PhaseRunning, spec.PhaseStarting, spec.PhasePaused, spec.PhaseDegraded}
	}
	if o.Spec.Force {
		phases = append(phases, spec.PhaseStopping)
	}
	if t == spec.OperationStop && (vm.ShouldRun() || !answered(vm)) {
		phases = append(phases, spec.PhaseStopped) // it is about to start
	}
	if !slices.Contains(phases, phase) {
		return no(conditions.ReasonNotApplicableForPhase, "machine %s is %s; %s is for machines that are %s", vm.Name, phase, text(o), strings.Join(phases, ", "))
	}
	if t == spec.OperationRestart {
		switch {
		case !vm.ShouldRun() && !o.Spec.Force:
			return no(conditions.ReasonNotApplicableForPhase, "machine %s is to stop: %s; start it when it has stopped", vm.Name, powerText(vm))
		case d.s.Pod == nil:
			return yet(no(conditions.ReasonNotReadyToBeExecuted, "machine %s has no pod that could be replaced", vm.Name))
		}
	}
	return refusal{}
}

func (d *decision) pending(o *spec.VirtualMachineOperation, r refusal) {
	d.plan.WakeAt(reconcile.Earlier(d.s.Now.Add(settleRetry), o.CreationTimestamp.Add(settling)))
	st := *o.Status.DeepCopy()
	st.Phase = spec.OperationPending
	if st = d.with(o, st, conditions.Completed, metav1.ConditionFalse, r.reason, r.message); !reflect.DeepEqual(st, o.Status) {
		d.do(write(o, st))
	}
}

// supersedes reports whether an operation replaces another one that has begun: any stop replaces
// a start, and one that does not wait for a guest one that does.
func supersedes(o, active *spec.VirtualMachineOperation) bool {
	switch active.Spec.Type {
	case spec.OperationStart:
		return o.Spec.Type == spec.OperationStop
	case spec.OperationStop, spec.OperationRestart:
		return !active.Spec.Force && o.Spec.Force && (o.Spec.Type == spec.OperationStop || o.Spec.Type == spec.OperationRestart)
	}
	return false
}

// cleanUp releases finished operations, and deletes those that are too old or too many.
func (d *decision) cleanUp() {
	var finished []*spec.VirtualMachineOperation
	for _, o := range d.all {
		if o.DeletionTimestamp == nil && o.Status.Phase.Finished() {
			finished = append(finished, o)
		}
	}
	slices.SortFunc(finished, func(a, b *spec.VirtualMachineOperation) int { return cmp.Or(ended(b).Compare(ended(a)), earlier(b, a)) })
	for i, o := range finished {
		if held(o) {
			d.letGo(o)
			continue
		}
		until := ended(o).Add(d.s.Cleanup.age())
		if i < d.s.Cleanup.keep() && d.s.Now.Before(until) {
			d.plan.WakeAt(until)
			continue
		}
		d.do(reconcile.DeleteOperation{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion})
	}
}

func ended(o *spec.VirtualMachineOperation) time.Time {
	if t := o.Status.CompletionTime; t != nil {
		return t.Time
	}
	return o.CreationTimestamp.Time
}

func (d *decision) lateText(o *spec.VirtualMachineOperation) string {
	what := "it was not carried out in its time"
	if o.Status.Deadline != nil && o.Status.StartTime != nil {
		what = fmt.Sprintf("it was not carried out in %v", o.Status.Deadline.Sub(o.Status.StartTime.Time))
	}
	goesOn := "; the machine goes on with it"
	if o.Spec.Type == spec.OperationRestart {
		goesOn = "; if the machine has not begun to restart, it does not do so any more"
		if d.takeBackRefused(o) != nil { // [decision.finish] reports the consequence
			goesOn = ""
		}
	}
	if vm := d.s.Machine; vm != nil {
		what += ": machine " + vm.Name + " is " + vm.Status.Phase
		if c := spec.FindCondition(vm.Status.Conditions, conditions.Ready); c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
			// The machine reports it, too, if there is no room for it here.
			if why := " (" + c.Message + ")"; len(what)+len(why)+len(goesOn) <= conditions.Line {
				what += why
			}
		}
	}
	return what + goesOn
}

func powerText(vm *spec.VirtualMachine) string {
	state := spec.StateStopped
	if vm.ShouldRun() {
		state = spec.StateRunning
	}
	if p := vm.Status.Power; vm.Spec.RunPolicy != "" && p != nil {
		return fmt.Sprintf("%s (%s; run policy %s)", state, p.Reason, vm.Spec.RunPolicy)
	}
	if vm.Spec.RunPolicy != "" {
		return fmt.Sprintf("%s (run policy %s)", state, vm.Spec.RunPolicy)
	}
	return fmt.Sprintf("spec.vm.state is %s", state)
}
