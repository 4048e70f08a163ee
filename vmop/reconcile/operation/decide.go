package operation

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Decide is total and deterministic: equal snapshots give equal plans, and the
// snapshot is not changed.
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
	// One that ends is looked at again before another one begins.
	ends := d.takeBackLeft() || active != nil && (active.DeletionTimestamp != nil || !d.proceed(active))
	d.admit(active, ends)
	d.cleanUp()
	return d.plan
}

// earlier is the order of operations: their age, then their names.
func earlier(a, b *spec.VirtualMachineOperation) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// decision is the state of one call of Decide.
type decision struct {
	s    *Snapshot
	all  []*spec.VirtualMachineOperation
	plan reconcile.Plan
	// busy: the plan writes the operation in progress.
	busy bool
}

// active is the operation that has begun and is not finished; nil if there is none. One that is
// being deleted is active until it has taken back its request.
func (d *decision) active() *spec.VirtualMachineOperation {
	for _, o := range d.all {
		if o.Status.Phase == spec.OperationInProgress || o.DeletionTimestamp != nil && held(o) && !o.Status.Phase.Finished() {
			return o
		}
	}
	return nil
}

func held(o *spec.VirtualMachineOperation) bool {
	return slices.Contains(o.Finalizers, names.FinalizerOperation)
}

// do adds actions that belong together to the plan, or none if the API server has
// refused one of them a moment ago.
func (d *decision) do(actions ...reconcile.Action) bool {
	return d.plan.Add(d.s.Failures, d.s.Now, actions...) == nil
}

func (d *decision) now() *metav1.Time {
	return new(metav1.NewTime(d.s.Now.UTC().Truncate(time.Second)))
}

// write is a new status of an operation, which is taken if the operation is still as
// it was seen.
func write(o *spec.VirtualMachineOperation, status spec.VirtualMachineOperationStatus) reconcile.Action {
	return reconcile.Patch{
		Kind: names.KindOperation, Name: o.Name, Subresource: "status", UID: o.UID, ResourceVersion: o.ResourceVersion,
		Manager: names.OperatorStatusManager,
		Fields:  map[string]any{"status": reconcile.StatusOf(names.KindOperation, o, "", status).Status},
	}
}

// with is a status with a condition.
func (d *decision) with(o *spec.VirtualMachineOperation, st spec.VirtualMachineOperationStatus, kind string, status metav1.ConditionStatus, reason, message string) spec.VirtualMachineOperationStatus {
	st.Conditions = spec.WithCondition(st.Conditions, spec.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: o.Generation, LastTransitionTime: *d.now(),
	})
	return st
}

// The reasons of events.
const (
	eventStarted    = "OperationStarted"
	eventCompleted  = "OperationCompleted"
	eventFailed     = "OperationFailed"
	eventSuperseded = "OperationSuperseded"
)

// TellsEnd is the phase in which an event reports that an operation has ended; empty for any other.
// The event's action is the type of the operation.
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

func (d *decision) tell(o *spec.VirtualMachineOperation, kind, reason, note string) {
	d.plan.Events = append(d.plan.Events, reconcile.Event{
		About: &corev1.ObjectReference{
			APIVersion: spec.GroupVersion().String(), Kind: names.KindOperation, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		},
		Type: kind, Reason: reason, Action: action(o.Spec.Type), Note: note,
	})
}

// action is a type as an event has it.
func action(t spec.OperationType) string {
	if t == "" {
		return "Operate"
	}
	return string(t)
}

// finish ends an operation, after taking back its request. Where the API server refuses that, the
// operation ends as well, and reports it: see [decision.takeBackLeft].
func (d *decision) finish(o *spec.VirtualMachineOperation, phase spec.OperationPhase, reason, message string) {
	st := *o.Status.DeepCopy()
	st.Phase, st.CompletionTime = phase, d.now()
	status, event, kind := metav1.ConditionTrue, eventCompleted, corev1.EventTypeNormal
	switch phase {
	case spec.OperationFailed:
		status, event, kind = metav1.ConditionFalse, eventFailed, corev1.EventTypeWarning
	case spec.OperationSuperseded:
		event = eventSuperseded
	}
	if phase == spec.OperationCompleted {
		st = d.with(o, st, conditions.SignalSent, metav1.ConditionTrue, conditions.ReasonSignalSent, d.told(o))
	}
	var actions []reconcile.Action
	if phase != spec.OperationCompleted {
		if back := d.takeBack(o); back != nil {
			if f := reconcile.Refused(d.s.Failures, back.Target(), d.s.Now); f != nil {
				d.plan.WakeAt(f.RetryAt())
				message += fmt.Sprintf("; its request cannot be taken back, so that the machine may still be restarted: %s: %s", f.Target, f.Message)
			} else {
				actions = append(actions, back)
			}
		}
	}
	st = d.with(o, st, conditions.Completed, status, reason, message)
	if d.do(append(actions, write(o, st))...) {
		d.tell(o, kind, event, message)
	}
}

// takeBack is what takes back the request of a restart; nil if there is nothing to
// take back. A machine that has begun with it goes on.
func (d *decision) takeBack(o *spec.VirtualMachineOperation) reconcile.Action {
	vm := d.s.Machine
	if vm == nil || o.Status.Request == "" || vm.UID != o.Status.VirtualMachineUID || !strings.HasPrefix(o.Status.Request, string(machine.VerbRestart)+" ") ||
		vm.Annotations[names.AnnotationPowerRequest] != o.Status.Request {
		return nil
	}
	return reconcile.Patch{
		Kind: names.KindVirtualMachine, Name: vm.Name, UID: vm.UID, ResourceVersion: vm.ResourceVersion, Manager: names.OperatorStatusManager,
		Annotations: map[string]any{names.AnnotationPowerRequest: nil},
	}
}

// takeBackLeft takes back the requests of operations that have ended without being carried
// out, and could not take them back then. It reports whether there was one.
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

// deleted is for an operation that is being deleted. One that has begun takes back its request and
// is released then, or when its time is over, if the API server refuses that.
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

func (d *decision) letGo(o *spec.VirtualMachineOperation) {
	d.finalizers(o, slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == names.FinalizerOperation }))
}

func (d *decision) finalizers(o *spec.VirtualMachineOperation, all []string) {
	d.do(reconcile.SetFinalizers{Kind: names.KindOperation, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Finalizers: all})
}

// proceed looks after the operation in progress. It reports whether it still is.
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

// changed reports whether the specification of an operation is not the one that it was
// made with. The definition refuses that; one that is being deleted has another
// generation as well.
func changed(o *spec.VirtualMachineOperation) bool {
	return o.Generation > 1 && o.DeletionTimestamp == nil
}

// late reports whether the time of an operation is over. One that has none in its status, which
// only another writer can have written, is late.
func (d *decision) late(o *spec.VirtualMachineOperation) bool {
	return o.Status.Deadline == nil || !d.s.Now.Before(o.Status.Deadline.Time)
}

// received reports whether the machine has the request.
func (d *decision) received(o *spec.VirtualMachineOperation) bool {
	vm, request := d.s.Machine, o.Status.Request
	return request != "" && (vm.Annotations[names.AnnotationPowerRequest] == request || vm.Status.Power != nil && vm.Status.Power.Request == request)
}

// answered reports whether the operator has acted on the machine's last request.
func answered(vm *spec.VirtualMachine) bool {
	return machine.Answered(vm) && vm.Status.ObservedGeneration >= vm.Generation
}

// done reports whether what was asked for is so.
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

// otherwise reports whether the machine has answered and is to be otherwise than was
// asked for.
func (d *decision) otherwise(o *spec.VirtualMachineOperation) bool {
	vm := d.s.Machine
	return answered(vm) && vm.ShouldRun() == (o.Spec.Type == spec.OperationStop)
}

// send writes the request to the machine. The status is written before, even if nothing in it is
// new: the API server accepts that only while the operation is as it was seen.
func (d *decision) send(o *spec.VirtualMachineOperation, st spec.VirtualMachineOperationStatus) bool {
	vm := d.s.Machine
	verb, _, _ := strings.Cut(st.Request, " ")
	p := reconcile.Patch{
		Kind: names.KindVirtualMachine, Name: vm.Name, UID: vm.UID, ResourceVersion: vm.ResourceVersion, Manager: names.OperatorStatusManager,
		Annotations: map[string]any{names.AnnotationPowerRequest: st.Request},
	}
	if o.Spec.Force {
		p.Annotations[names.AnnotationForceStop] = mark(o)
	}
	if state := stateFor(machine.Verb(verb)); vm.Spec.RunPolicy == "" && state != "" {
		p.Fields = map[string]any{"spec": map[string]any{"vm": map[string]any{"state": string(state)}}}
	}
	if f := reconcile.Refused(d.s.Failures, p.Target(), d.s.Now); f != nil {
		// It is tried again until the time is over.
		d.plan.WakeAt(f.RetryAt())
		next := d.with(o, st, conditions.SignalSent, metav1.ConditionFalse, conditions.ReasonSignalError, f.Target.String()+": "+f.Message)
		if !reflect.DeepEqual(next, o.Status) {
			return d.do(write(o, next))
		}
		return false
	}
	return d.do(write(o, st), p)
}

// stateFor is spec.vm.state of a machine without a run policy after a request.
func stateFor(v machine.Verb) spec.MachineState {
	switch v {
	case machine.VerbStart:
		return spec.StateRunning
	case machine.VerbStop:
		return spec.StateStopped
	}
	return ""
}

// begin lets an operation begin. It gets its finalizer first, so that it cannot disappear with its
// request.
func (d *decision) begin(o *spec.VirtualMachineOperation) {
	if !held(o) {
		d.finalizers(o, append(slices.Clone(o.Finalizers), names.FinalizerOperation))
		return
	}
	vm := d.s.Machine
	st := *o.Status.DeepCopy()
	st.Phase, st.VirtualMachineUID, st.StartTime = spec.OperationInProgress, vm.UID, d.now()
	deadline := metav1.NewTime(st.StartTime.Add(timeFor(o, vm)))
	st.Deadline = &deadline
	if d.s.Pod != nil {
		st.PodUID = d.s.Pod.UID
	}
	verb := map[spec.OperationType]machine.Verb{
		spec.OperationStart: machine.VerbStart, spec.OperationStop: machine.VerbStop, spec.OperationRestart: machine.VerbRestart,
	}[o.Spec.Type]
	if o.Spec.Type == spec.OperationRestart && !vm.ShouldRun() {
		verb = machine.VerbStart // it is being stopped, and is to run again
	}
	st.Request = requestOf(o, verb)
	message := map[spec.OperationType]string{
		spec.OperationStart: "the machine is being started", spec.OperationStop: "the machine is being stopped", spec.OperationRestart: "the machine is being restarted",
	}[o.Spec.Type]
	reason := map[spec.OperationType]string{
		spec.OperationStart: conditions.ReasonStartInProgress, spec.OperationStop: conditions.ReasonStopInProgress, spec.OperationRestart: conditions.ReasonRestartInProgress,
	}[o.Spec.Type]
	st = d.with(o, st, conditions.Completed, metav1.ConditionFalse, reason, message)
	st = d.with(o, st, conditions.SignalSent, metav1.ConditionFalse, conditions.ReasonSignalPending, "the machine is about to be told")
	if d.send(o, st) {
		d.tell(o, corev1.EventTypeNormal, eventStarted, fmt.Sprintf("%s, until %s at the latest", message, deadline.UTC().Format(time.RFC3339)))
	}
}
