package operation

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Decide is total and deterministic: equal snapshots give equal plans, and the snapshot is not
// changed.
func Decide(s Snapshot) reconcile.Plan {
	d := &decision{s: &s}
	for i := range s.Operations {
		d.all = append(d.all, &s.Operations[i])
	}
	slices.SortFunc(d.all, earlier)
	for _, o := range d.all {
		if o.DeletionTimestamp != nil {
			d.deleted(o)
		}
	}
	active := d.active()
	// After one has ended its result is observed before another one begins.
	ends := d.takeBackLeft() || active != nil && (active.DeletionTimestamp != nil || !d.proceed(active))
	d.admit(active, ends)
	d.cleanUp()
	return d.plan
}

// TellsEnd returns the phase in which an event reports that an operation has ended; empty for any
// other. The event's action is the type of the operation.
func TellsEnd(e *reconcile.Event) spec.OperationPhase {
	if e == nil {
		return ""
	}
	switch e.Reason {
	case eventCompleted:
		return spec.OperationCompleted
	case eventFailed:
		return spec.OperationFailed
	case eventSuperseded:
		return spec.OperationSuperseded
	}
	return ""
}

// takeBackLeft withdraws the requests of operations that have ended without being carried out,
// and could not withdraw them then. It reports whether there was one.
func (d *decision) takeBackLeft() bool {
	for _, o := range d.all {
		if p := o.Status.Phase; o.DeletionTimestamp != nil || p != spec.OperationFailed && p != spec.OperationSuperseded {
			continue
		}
		if back := d.takeBack(o); back != nil {
			return d.do(back)
		}
	}
	return false
}

// deleted handles an operation that is being deleted. One that has begun withdraws its request
// and is released then, or when its time is over, if the API server refuses that.
func (d *decision) deleted(o *spec.VirtualMachineOperation) {
	if !held(o) {
		return
	}
	if !o.Status.Phase.Finished() {
		if o.Status.Phase != spec.OperationTerminating {
			st := *o.Status.DeepCopy()
			st.Phase = spec.OperationTerminating
			d.do(write(o, st))
			return
		}
		if back := d.takeBack(o); back != nil && (d.do(back) || !d.late(o)) {
			return
		}
	}
	d.letGo(o)
}

// proceed advances the operation in progress. It reports whether it still is.
func (d *decision) proceed(o *spec.VirtualMachineOperation) bool {
	vm, st := d.s.Machine, &o.Status
	fail := func(reason, format string, args ...any) bool {
		d.finish(o, spec.OperationFailed, reason, fmt.Sprintf(format, args...))
		return false
	}
	switch {
	case changed(o):
		return fail(conditions.ReasonInvalidSpecification, "its specification was changed after it had begun")
	case vm == nil && d.s.Unreadable == "":
		return fail(conditions.ReasonVirtualMachineNotFound, "machine %s is gone", o.Spec.VirtualMachineName)
	case vm != nil && vm.UID != st.VirtualMachineUID:
		return fail(conditions.ReasonVirtualMachineNotFound, "machine %s is another one by now, with the same name", vm.Name)
	case vm != nil && vm.DeletionTimestamp != nil:
		return fail(conditions.ReasonAborted, "machine %s is being deleted", vm.Name)
	}
	if vm != nil {
		sent := spec.ConditionIsTrue(st.Conditions, conditions.SignalSent)
		seen := sent || d.received(o)
		switch {
		case seen && d.done(o):
			d.finish(o, spec.OperationCompleted, conditions.ReasonOperationCompleted, doneText(o))
			return false
		case seen && d.otherwise(o):
			return fail(conditions.ReasonAborted, "machine %s is to be otherwise by now: %s", vm.Name, powerText(vm))
		case seen && d.blocked(o) != "":
			return fail(conditions.ReasonNotReadyToBeExecuted, "%s", because("machine "+vm.Name+" was not restarted: ", d.blocked(o)))
		case !d.late(o) && !seen:
			d.busy = d.send(o, *st.DeepCopy())
		case !d.late(o) && !sent:
			d.busy = d.do(write(o, d.with(o, *st.DeepCopy(), conditions.SignalSent, metav1.ConditionTrue, conditions.ReasonSignalSent, d.told(o))))
		case !d.late(o):
			d.busy = d.progress(o)
		}
	}
	if d.late(o) {
		return fail(conditions.ReasonOperationFailed, "%s", d.lateText(o))
	}
	d.plan.WakeAt(st.Deadline.Time)
	return true
}

// progress tells what the machine waits for, if it does not begin to restart. It reports whether
// something is written.
func (d *decision) progress(o *spec.VirtualMachineOperation) bool {
	reason, message := underWay(o.Spec.Type)
	if why, blocked := d.heldBack(o); why != "" {
		message = because("the restart waits: ", why)
		if blocked && o.Status.StartTime != nil {
			d.plan.WakeAt(o.Status.StartTime.Add(settling))
		}
	}
	next := d.with(o, *o.Status.DeepCopy(), conditions.Completed, metav1.ConditionFalse, reason, message)
	return !reflect.DeepEqual(next, o.Status) && d.do(write(o, next))
}

// because returns what is so and why, on one line.
func because(what, why string) string {
	why, _ = conditions.Fit(why, len(what))
	return what + why
}

// heldBack returns why the machine runs on although it was told to restart, and whether it does until
// somebody has repaired something; why is empty if nothing keeps it from that.
func (d *decision) heldBack(o *spec.VirtualMachineOperation) (why string, blocked bool) {
	if o.Spec.Type != spec.OperationRestart || renewed(o, d.s.Machine, d.s.Pod) {
		return "", false
	}
	return machine.RestartHeldBack(d.s.Machine)
}

// blocked returns why the machine will not restart; empty if it may. It has said so for some time
// then: at first that may be about what was so before it was told.
func (d *decision) blocked(o *spec.VirtualMachineOperation) string {
	if why, blocked := d.heldBack(o); blocked && o.Status.StartTime != nil && !d.s.Now.Before(o.Status.StartTime.Add(settling)) {
		return why
	}
	return ""
}

// late reports whether the time of an operation is over. One without a deadline in its status,
// which only another client can have removed, is late.
func (d *decision) late(o *spec.VirtualMachineOperation) bool {
	return o.Status.Deadline == nil || !d.s.Now.Before(o.Status.Deadline.Time)
}

func (d *decision) received(o *spec.VirtualMachineOperation) bool {
	vm, request := d.s.Machine, o.Status.Request
	return request != "" && (vm.Annotations[names.AnnotationPowerRequest] == request || vm.Status.Power != nil && vm.Status.Power.Request == request)
}

func (d *decision) done(o *spec.VirtualMachineOperation) bool {
	vm := d.s.Machine
	switch o.Spec.Type {
	case spec.OperationStop:
		return vm.Status.Phase == spec.PhaseStopped && !vm.ShouldRun() && answered(vm)
	case spec.OperationStart:
		return vm.Status.Phase == spec.PhaseRunning && vm.ShouldRun() && answered(vm)
	}
	return vm.Status.Phase == spec.PhaseRunning && d.s.Fresh && renewed(o, vm, d.s.Pod)
}

// otherwise reports whether the machine has answered and is to be in another state than
// requested.
func (d *decision) otherwise(o *spec.VirtualMachineOperation) bool {
	vm := d.s.Machine
	return answered(vm) && vm.ShouldRun() == (o.Spec.Type == spec.OperationStop)
}
