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

type decision struct {
	s    *Snapshot
	all  []*spec.VirtualMachineOperation
	plan reconcile.Plan
	// busy: the plan writes the operation in progress.
	busy bool
}

// active returns the operation that has begun and is not finished, or nil. One that is being
// deleted is active until it has withdrawn its request.
func (d *decision) active() *spec.VirtualMachineOperation {
	for _, o := range d.all {
		if o.Status.Phase == spec.OperationInProgress || o.DeletionTimestamp != nil && held(o) && !o.Status.Phase.Finished() {
			return o
		}
	}
	return nil
}

// do adds actions that belong together to the plan, or none if the API server has just refused
// one of them.
func (d *decision) do(actions ...reconcile.Action) bool {
	return d.plan.Add(d.s.Failures, d.s.Now, actions...) == nil
}

func (d *decision) now() *metav1.Time {
	return new(metav1.NewTime(d.s.Now.UTC().Truncate(time.Second)))
}

func (d *decision) with(o *spec.VirtualMachineOperation, st spec.VirtualMachineOperationStatus, kind string, status metav1.ConditionStatus, reason, message string) spec.VirtualMachineOperationStatus {
	st.Conditions = spec.WithCondition(st.Conditions, spec.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: o.Generation, LastTransitionTime: *d.now(),
	})
	return st
}

func (d *decision) tell(o *spec.VirtualMachineOperation, kind, reason, note string) {
	d.plan.Events = append(d.plan.Events, reconcile.Event{
		About: &corev1.ObjectReference{
			APIVersion: spec.GroupVersion().String(), Kind: names.KindOperation, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		},
		Type: kind, Reason: reason, Action: action(o.Spec.Type), Note: note,
	})
}

// finish ends an operation, after withdrawing its request. Where the API server refuses that, the
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
			if f := d.takeBackRefused(o); f != nil {
				d.plan.WakeAt(f.RetryAt())
				but := "; its request cannot be taken back, so that the machine may still be restarted: " + f.Message
				message, _ = conditions.Fit(message, len(but))
				message += but
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

// begin begins an operation. It gets its finalizer first, so that it cannot disappear with its
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
	reason, message := underWay(o.Spec.Type)
	st = d.with(o, st, conditions.Completed, metav1.ConditionFalse, reason, message)
	st = d.with(o, st, conditions.SignalSent, metav1.ConditionFalse, conditions.ReasonSignalPending, "the machine is about to be told")
	if d.send(o, st) {
		d.tell(o, corev1.EventTypeNormal, eventStarted, fmt.Sprintf("%s, until %s at the latest", message, deadline.UTC().Format(time.RFC3339)))
	}
}

// underWay returns the reason and the message of an operation in progress.
func underWay(t spec.OperationType) (reason, message string) {
	switch t {
	case spec.OperationStart:
		return conditions.ReasonStartInProgress, "the machine is being started"
	case spec.OperationStop:
		return conditions.ReasonStopInProgress, "the machine is being stopped"
	}
	return conditions.ReasonRestartInProgress, "the machine is being restarted"
}

func (d *decision) letGo(o *spec.VirtualMachineOperation) {
	d.finalizers(o, slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == names.FinalizerOperation }))
}

func (d *decision) finalizers(o *spec.VirtualMachineOperation, all []string) {
	d.do(reconcile.SetFinalizers{Kind: names.KindOperation, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Finalizers: all})
}

func earlier(a, b *spec.VirtualMachineOperation) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

func held(o *spec.VirtualMachineOperation) bool {
	return slices.Contains(o.Finalizers, names.FinalizerOperation)
}

// write returns a status write that succeeds only if the operation is still as observed.
func write(o *spec.VirtualMachineOperation, status spec.VirtualMachineOperationStatus) reconcile.Action {
	return reconcile.Patch{
		Kind: names.KindOperation, Name: o.Name, Subresource: "status", UID: o.UID, ResourceVersion: o.ResourceVersion,
		Manager: names.OperatorStatusManager,
		Fields:  map[string]any{"status": reconcile.StatusOf(names.KindOperation, o, "", status).Status},
	}
}

func action(t spec.OperationType) string {
	if t == "" {
		return "Operate"
	}
	return string(t)
}

// changed reports whether the specification of an operation was changed. The definition refuses
// that; deletion, too, increments the generation.
func changed(o *spec.VirtualMachineOperation) bool {
	return o.Generation > 1 && o.DeletionTimestamp == nil
}

func answered(vm *spec.VirtualMachine) bool {
	return machine.Answered(vm) && vm.Status.ObservedGeneration >= vm.Generation
}

func (d *decision) told(o *spec.VirtualMachineOperation) string {
	return "machine " + o.Spec.VirtualMachineName + " was told by annotation " + names.AnnotationPowerRequest
}

func text(o *spec.VirtualMachineOperation) string {
	if o.Spec.Force {
		return string(o.Spec.Type) + " with force"
	}
	return string(o.Spec.Type)
}

func doneText(o *spec.VirtualMachineOperation) string {
	switch o.Spec.Type {
	case spec.OperationStart:
		return "the machine runs"
	case spec.OperationStop:
		return "the machine has stopped"
	}
	return "the machine runs in a new pod"
}

// The reasons of events.
const (
	eventStarted    = "OperationStarted"
	eventCompleted  = "OperationCompleted"
	eventFailed     = "OperationFailed"
	eventSuperseded = "OperationSuperseded"
)

// takeBack returns the action that withdraws the request of a restart; nil if there is nothing to
// withdraw. A machine that has begun with it goes on.
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

func (d *decision) takeBackRefused(o *spec.VirtualMachineOperation) *reconcile.Failure {
	back := d.takeBack(o)
	if back == nil {
		return nil
	}
	return reconcile.Refused(d.s.Failures, back.Target(), d.s.Now)
}

// send writes the request to the machine. The status is written before, even if unchanged: the
// API server accepts that only while the operation is as observed.
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
		// It is retried until the time is over.
		d.plan.WakeAt(f.RetryAt())
		next := d.with(o, st, conditions.SignalSent, metav1.ConditionFalse, conditions.ReasonSignalError, f.Target.String()+": "+f.Message)
		if !reflect.DeepEqual(next, o.Status) {
			return d.do(write(o, next))
		}
		return false
	}
	return d.do(write(o, st), p)
}

func stateFor(v machine.Verb) spec.MachineState {
	switch v {
	case machine.VerbStart:
		return spec.StateRunning
	case machine.VerbStop:
		return spec.StateStopped
	}
	return ""
}
