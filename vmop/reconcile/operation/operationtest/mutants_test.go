package operationtest

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

type mutant = promises.Mutant[operation.Snapshot]

// own has objects that a mutant may change.
func own(s operation.Snapshot) operation.Snapshot {
	s.Machine, s.Pod = s.Machine.DeepCopy(), s.Pod.DeepCopy()
	all := s.Operations
	s.Operations = nil
	for i := range all {
		s.Operations = append(s.Operations, *all[i].DeepCopy())
	}
	return s
}

// eachOperation is a mutant that sees operations otherwise than they are.
func eachOperation(change func(*operation.Snapshot, *spec.VirtualMachineOperation)) func(*operation.Snapshot) {
	return func(s *operation.Snapshot) {
		for i := range s.Operations {
			change(s, &s.Operations[i])
		}
	}
}

// patches is a mutant's plan with the writes to objects of a kind changed.
func patches(kind string, change func(*operation.Snapshot, *reconcile.Patch)) func(*operation.Snapshot, *reconcile.Plan) {
	return func(s *operation.Snapshot, p *reconcile.Plan) {
		for i, a := range p.Actions {
			if a, is := a.(reconcile.Patch); is && a.Kind == kind {
				change(s, &a)
				p.Actions[i] = a
			}
		}
	}
}

// statuses is a mutant's plan with the statuses of operations changed.
func statuses(change func(status map[string]any)) func(*operation.Snapshot, *reconcile.Plan) {
	return patches(names.KindOperation, func(_ *operation.Snapshot, a *reconcile.Patch) { change(a.Fields["status"].(map[string]any)) })
}

func mutants() []mutant {
	inProgress := func(o *spec.VirtualMachineOperation) bool { return o.Status.Phase == spec.OperationInProgress }
	return []mutant{
		{
			Fault: "a pod is deleted for a restart", Promise: "nothing else is written",
			After: promises.Adds(func(s *operation.Snapshot) reconcile.Action {
				if s.Pod == nil {
					return nil
				}
				return reconcile.DeletePod{Name: s.Pod.Name, UID: s.Pod.UID}
			}),
		},
		{
			Fault: "a plan depends on how often it is asked for", Promise: "equal snapshots give equal plans",
			After: func() func(*operation.Snapshot, *reconcile.Plan) {
				var asked atomic.Int64
				return func(s *operation.Snapshot, p *reconcile.Plan) {
					p.Wake = s.Now.Add(time.Duration(asked.Add(1)) * time.Hour)
				}
			}(),
		},
		{
			Fault: "the snapshot is changed", Promise: "a snapshot is not changed",
			After: func(s *operation.Snapshot, _ *reconcile.Plan) {
				for i := range s.Operations {
					s.Operations[i].Labels = map[string]string{"seen": "yes"}
				}
			},
		},
		{
			Fault: "a status is written as a specification", Promise: "the status of the machine's own operations is written",
			After: patches(names.KindOperation, func(_ *operation.Snapshot, a *reconcile.Patch) { a.Subresource = "" }),
		},
		{
			Fault: "another machine is told", Promise: "a machine is told itself",
			After: patches(names.KindVirtualMachine, func(_ *operation.Snapshot, a *reconcile.Patch) { a.Name += "-2" }),
		},
		{
			Fault: "a machine gets a label, too", Promise: "a machine gets requests and a state, and nothing else",
			After: patches(names.KindVirtualMachine, func(_ *operation.Snapshot, a *reconcile.Patch) {
				annotations := map[string]any{"operated": "yes"}
				for k, v := range a.Annotations {
					annotations[k] = v
				}
				a.Annotations = annotations
			}),
		},
		{
			Fault: "a machine is told before that is noted", Promise: "a machine is told of what is in progress",
			After: func(s *operation.Snapshot, p *reconcile.Plan) {
				for i := range s.Operations {
					if o := &s.Operations[i]; s.Machine != nil && o.Status.Phase == "" {
						p.Actions = append([]reconcile.Action{reconcile.Patch{
							Kind: names.KindVirtualMachine, Name: s.Machine.Name, UID: s.Machine.UID, ResourceVersion: s.Machine.ResourceVersion,
							Annotations: map[string]any{names.AnnotationPowerRequest: "start operation/" + string(o.UID)},
						}}, p.Actions...)
						return
					}
				}
			},
		},
		{
			Fault: "nobody sees that a machine was told", Promise: "a machine is told once",
			Before: func(s *operation.Snapshot) {
				if s.Machine != nil {
					delete(s.Machine.Annotations, names.AnnotationPowerRequest)
					if p := s.Machine.Status.Power; p != nil {
						p.Request = ""
					}
				}
				for i := range s.Operations {
					s.Operations[i].Status.Conditions = nil
				}
			},
		},
		{
			Fault: "nobody looks at the time", Promise: "a machine is told in time",
			Before: func(s *operation.Snapshot) {
				for i := range s.Operations {
					if o := &s.Operations[i]; inProgress(o) && !s.Now.Before(o.Status.Deadline.Time) {
						s.Now = o.Status.Deadline.Add(-time.Second)
					}
				}
			},
		},
		{
			Fault: "no operation fails", Promise: "every operation ends",
			After: promises.Without[operation.Snapshot](func(a reconcile.Action) bool {
				p, is := a.(reconcile.Patch)
				if !is || p.Kind != names.KindOperation {
					return false
				}
				return p.Fields["status"].(map[string]any)["phase"] == string(spec.OperationFailed)
			}),
		},
		{
			Fault: "nobody sees that an operation was changed", Promise: "what was changed is not carried out",
			Before: eachOperation(func(_ *operation.Snapshot, o *spec.VirtualMachineOperation) { o.Generation = 1 }),
		},
		{
			Fault: "a request names nobody", Promise: "a request names its operation",
			After: patches(names.KindVirtualMachine, func(_ *operation.Snapshot, a *reconcile.Patch) {
				if a.Annotations[names.AnnotationPowerRequest] != nil {
					a.Annotations = map[string]any{names.AnnotationPowerRequest: "restart now"}
				}
			}),
		},
		{
			Fault: "what has ended begins again", Promise: "phases come in their order",
			Before: eachOperation(func(_ *operation.Snapshot, o *spec.VirtualMachineOperation) {
				if o.Status.Phase == spec.OperationFailed {
					o.Status = spec.VirtualMachineOperationStatus{}
				}
			}),
		},
		{
			Fault: "what has begun has no deadline", Promise: "what is in progress says since when, until when and of what",
			After: statuses(func(status map[string]any) { delete(status, "deadline") }),
		},
		{
			Fault: "nobody notes when an operation has ended", Promise: "what has ended says when",
			After: statuses(func(status map[string]any) { delete(status, "completionTime") }),
		},
		{
			Fault: "a condition says all that there is to say", Promise: "a message is one line",
			After: statuses(func(status map[string]any) {
				all, _ := status["conditions"].([]any)
				for _, c := range all {
					c.(map[string]any)["message"] = strings.Repeat("and so on; ", conditions.Line)
				}
			}),
		},
		{
			Fault: "an operation fails without a word", Promise: "what has failed says why",
			After: statuses(func(status map[string]any) {
				all, _ := status["conditions"].([]any)
				for _, c := range all {
					c.(map[string]any)["message"] = ""
				}
			}),
		},
		{
			Fault: "nobody sees what is in progress", Promise: "one operation of a machine is in progress",
			Before: func(s *operation.Snapshot) {
				if !slices.ContainsFunc(s.Operations, func(o spec.VirtualMachineOperation) bool { return o.Status.Phase == "" }) {
					return
				}
				s.Operations = slices.DeleteFunc(s.Operations, func(o spec.VirtualMachineOperation) bool { return inProgress(&o) })
			},
		},
		{
			Fault: "a machine counts as told", Promise: "what is done was asked of the machine",
			Before: eachOperation(func(_ *operation.Snapshot, o *spec.VirtualMachineOperation) {
				if inProgress(o) {
					o.Status.Conditions = spec.WithCondition(o.Status.Conditions, spec.Condition{Type: conditions.SignalSent, Status: metav1.ConditionTrue, Reason: conditions.ReasonSignalSent})
				}
			}),
		},
		{
			Fault: "every pod counts as new", Promise: "a restart is a new pod",
			Before: func(s *operation.Snapshot) {
				for i := range s.Operations {
					if o := &s.Operations[i]; inProgress(o) && s.Pod != nil {
						s.Pod.UID, s.Fresh = "new", true
						metav1.SetMetaDataAnnotation(&s.Pod.ObjectMeta, names.AnnotationPowerRequest, o.Status.Request)
					}
				}
			},
		},
		{
			Fault: "nobody reads why a machine runs on", Promise: "a restart that does not begin says why",
			Before: func(s *operation.Snapshot) {
				if s.Machine != nil {
					s.Machine.Status.Conditions = nil
				}
			},
		},
		{
			Fault: "what somebody has to repair counts as passing", Promise: "a restart that cannot begin ends soon",
			Before: func(s *operation.Snapshot) {
				if s.Machine == nil {
					return
				}
				for i := range s.Machine.Status.Conditions {
					if c := &s.Machine.Status.Conditions[i]; c.Reason == conditions.ReasonRestartBlocked {
						c.Reason = conditions.ReasonRestartPending
					}
				}
			},
		},
		{
			Fault: "what has not ended is cleaned up", Promise: "only what has ended is cleaned up",
			After: func(s *operation.Snapshot, p *reconcile.Plan) {
				for i := range s.Operations {
					o := &s.Operations[i]
					p.Actions = append([]reconcile.Action{reconcile.DeleteOperation{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}, p.Actions...)
				}
			},
		},
		{
			Fault: "one operation is kept, for a second", Promise: "what is new is not cleaned up",
			Before: func(s *operation.Snapshot) { s.Cleanup = operation.Cleanup{Keep: 1, For: time.Second} },
		},
		{
			Fault: "nothing is cleaned up", Promise: "what has ended is cleaned up",
			After: promises.Without[operation.Snapshot](func(a reconcile.Action) bool { _, is := a.(reconcile.DeleteOperation); return is }),
		},
		{
			Fault: "a finalizer is written without need", Promise: "the world comes to rest",
			After: func(s *operation.Snapshot, p *reconcile.Plan) {
				for i := range s.Operations {
					o := &s.Operations[i]
					p.Actions = append(p.Actions, reconcile.SetFinalizers{Kind: names.KindOperation, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Finalizers: o.Finalizers})
				}
			},
		},
		{
			Fault: "nothing is let go", Promise: "no operation is held for ever",
			After: promises.Without[operation.Snapshot](func(a reconcile.Action) bool {
				f, is := a.(reconcile.SetFinalizers)
				return is && len(f.Finalizers) == 0
			}),
		},
		{
			Fault: "what fails counts as refused", Promise: "what was refused has changed nothing",
			After: statuses(func(status map[string]any) {
				if status["phase"] == string(spec.OperationFailed) {
					status["startTime"] = nil
				}
			}),
		},
	}
}

func kind() *promises.Kind[operation.Snapshot] {
	return &promises.Kind[operation.Snapshot]{
		Decide: operation.Decide, Own: own, Mutants: mutants(),
		Live: func(_ *testing.T, draw func(string, int) int, decide func(operation.Snapshot) reconcile.Plan) *promises.Violation {
			w := newWorld()
			w.Draw, w.Decide = draw, decide
			return w.life()
		},
	}
}

func TestPromisesOfOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { hold(t, false, operation.Decide) })
}

// Caches that are older than what the operator itself has written are no reason to do
// anything twice.
func TestPromisesOfOperationsWithOldCaches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { hold(t, true, operation.Decide) })
}

// TestPromisesAreNoticed shows that the promises would be noticed to be broken.
func TestPromisesAreNoticed(t *testing.T) { kind().Break(t) }

// TestEveryPromiseHasAMutant finds the promises in the source of the world.
func TestEveryPromiseHasAMutant(t *testing.T) { kind().Registered(t) }

// Promises lists what the world looks at, and nothing else.
func TestEveryPromiseIsListed(t *testing.T) { promises.Listed(t, Promises()) }
