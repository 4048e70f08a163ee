package operation

import (
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
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
		case !d.late(o) && !seen:
			d.busy = d.send(o, *st.DeepCopy())
		case !d.late(o) && !sent:
			d.busy = d.do(write(o, d.with(o, *st.DeepCopy(), conditions.SignalSent, metav1.ConditionTrue, conditions.ReasonSignalSent, d.told(o))))
		}
	}
	if d.late(o) {
		return fail(conditions.ReasonOperationFailed, "%s", d.lateText(o))
	}
	d.plan.WakeAt(st.Deadline.Time)
	return true
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
