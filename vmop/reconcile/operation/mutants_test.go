package operation_test

import (
	"math/rand/v2"
	"slices"
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
)

// mutant is a decision with one fault, and the promise that must notice it: a guard
// that was forgotten, which is the same as not seeing what it guards against, or a plan
// that is wrong.
type mutant struct {
	fault, promise string
	before         func(*operation.Snapshot)
	after          func(*operation.Snapshot, *reconcile.Plan)
}

// worldsOfMutants are so many that each fault shows in many of them.
const worldsOfMutants uint64 = 1500

// decide is the decision with the fault. The snapshot is the mutant's own, unless the
// fault is to change it.
func (m *mutant) decide(s operation.Snapshot) reconcile.Plan {
	mine := s
	if m.before != nil {
		mine.Machine, mine.Pod = s.Machine.DeepCopy(), s.Pod.DeepCopy()
		mine.Operations = nil
		for i := range s.Operations {
			mine.Operations = append(mine.Operations, *s.Operations[i].DeepCopy())
		}
		m.before(&mine)
	}
	p := operation.Decide(mine)
	if m.after != nil {
		m.after(&s, &p)
	}
	return p
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

// without is a mutant's plan without some actions.
func without(drop func(reconcile.Action) bool) func(*operation.Snapshot, *reconcile.Plan) {
	return func(_ *operation.Snapshot, p *reconcile.Plan) { p.Actions = slices.DeleteFunc(p.Actions, drop) }
}

func mutants() []mutant {
	inProgress := func(o *spec.VirtualMachineOperation) bool { return o.Status.Phase == spec.OperationInProgress }
	return []mutant{
		{
			fault: "a plan depends on how often it is asked for", promise: "equal snapshots give equal plans",
			after: func() func(*operation.Snapshot, *reconcile.Plan) {
				var asked atomic.Int64
				return func(s *operation.Snapshot, p *reconcile.Plan) {
					p.Wake = s.Now.Add(time.Duration(asked.Add(1)) * time.Hour)
				}
			}(),
		},
		{
			fault: "the snapshot is changed", promise: "a snapshot is not changed",
			after: func(s *operation.Snapshot, _ *reconcile.Plan) {
				for i := range s.Operations {
					s.Operations[i].Labels = map[string]string{"seen": "yes"}
				}
			},
		},
		{
			fault: "a status is written as a specification", promise: "the status of the machine's own operations is written",
			after: patches(names.KindOperation, func(_ *operation.Snapshot, a *reconcile.Patch) { a.Subresource = "" }),
		},
		{
			fault: "another machine is told", promise: "a machine is told itself",
			after: patches(names.KindVirtualMachine, func(_ *operation.Snapshot, a *reconcile.Patch) { a.Name += "-2" }),
		},
		{
			fault: "a machine gets a label, too", promise: "a machine gets requests and a state, and nothing else",
			after: patches(names.KindVirtualMachine, func(_ *operation.Snapshot, a *reconcile.Patch) {
				annotations := map[string]any{"operated": "yes"}
				for k, v := range a.Annotations {
					annotations[k] = v
				}
				a.Annotations = annotations
			}),
		},
		{
			fault: "a machine is told before that is noted", promise: "a machine is told of what is in progress",
			after: func(s *operation.Snapshot, p *reconcile.Plan) {
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
			fault: "nobody sees that a machine was told", promise: "a machine is told once",
			before: func(s *operation.Snapshot) {
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
			fault: "nobody looks at the time", promise: "a machine is told in time",
			before: func(s *operation.Snapshot) {
				for i := range s.Operations {
					if o := &s.Operations[i]; inProgress(o) && !s.Now.Before(o.Status.Deadline.Time) {
						s.Now = o.Status.Deadline.Add(-time.Second)
					}
				}
			},
		},
		{
			fault: "no operation fails", promise: "every operation ends",
			after: without(func(a reconcile.Action) bool {
				p, is := a.(reconcile.Patch)
				if !is || p.Kind != names.KindOperation {
					return false
				}
				return p.Fields["status"].(map[string]any)["phase"] == string(spec.OperationFailed)
			}),
		},
		{
			fault: "nobody sees that an operation was changed", promise: "what was changed is not carried out",
			before: eachOperation(func(_ *operation.Snapshot, o *spec.VirtualMachineOperation) { o.Generation = 1 }),
		},
		{
			fault: "a request names nobody", promise: "a request names its operation",
			after: patches(names.KindVirtualMachine, func(_ *operation.Snapshot, a *reconcile.Patch) {
				if a.Annotations[names.AnnotationPowerRequest] != nil {
					a.Annotations = map[string]any{names.AnnotationPowerRequest: "restart now"}
				}
			}),
		},
		{
			fault: "what has ended begins again", promise: "phases come in their order",
			before: eachOperation(func(_ *operation.Snapshot, o *spec.VirtualMachineOperation) {
				if o.Status.Phase == spec.OperationFailed {
					o.Status = spec.VirtualMachineOperationStatus{}
				}
			}),
		},
		{
			fault: "what has begun has no deadline", promise: "what is in progress says since when, until when and of what",
			after: statuses(func(status map[string]any) { delete(status, "deadline") }),
		},
		{
			fault: "nobody notes when an operation has ended", promise: "what has ended says when",
			after: statuses(func(status map[string]any) { delete(status, "completionTime") }),
		},
		{
			fault: "an operation fails without a word", promise: "what has failed says why",
			after: statuses(func(status map[string]any) {
				all, _ := status["conditions"].([]any)
				for _, c := range all {
					c.(map[string]any)["message"] = ""
				}
			}),
		},
		{
			fault: "nobody sees what is in progress", promise: "one operation of a machine is in progress",
			before: func(s *operation.Snapshot) {
				if !slices.ContainsFunc(s.Operations, func(o spec.VirtualMachineOperation) bool { return o.Status.Phase == "" }) {
					return
				}
				s.Operations = slices.DeleteFunc(s.Operations, func(o spec.VirtualMachineOperation) bool { return inProgress(&o) })
			},
		},
		{
			fault: "a machine counts as told", promise: "what is done was asked of the machine",
			before: eachOperation(func(_ *operation.Snapshot, o *spec.VirtualMachineOperation) {
				if inProgress(o) {
					o.Status.Conditions = spec.WithCondition(o.Status.Conditions, spec.Condition{Type: conditions.SignalSent, Status: metav1.ConditionTrue, Reason: conditions.ReasonSignalSent})
				}
			}),
		},
		{
			fault: "every pod counts as new", promise: "a restart is a new pod",
			before: func(s *operation.Snapshot) {
				for i := range s.Operations {
					if o := &s.Operations[i]; inProgress(o) && s.Pod != nil {
						s.Pod.UID, s.Fresh = "new", true
						metav1.SetMetaDataAnnotation(&s.Pod.ObjectMeta, names.AnnotationPowerRequest, o.Status.Request)
					}
				}
			},
		},
		{
			fault: "what has not ended is cleaned up", promise: "only what has ended is cleaned up",
			after: func(s *operation.Snapshot, p *reconcile.Plan) {
				for i := range s.Operations {
					o := &s.Operations[i]
					p.Actions = append([]reconcile.Action{reconcile.DeleteOperation{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}, p.Actions...)
				}
			},
		},
		{
			fault: "one operation is kept, for a second", promise: "what is new is not cleaned up",
			before: func(s *operation.Snapshot) { s.Cleanup = operation.Cleanup{Keep: 1, For: time.Second} },
		},
		{
			fault: "nothing is cleaned up", promise: "what has ended is cleaned up",
			after: without(func(a reconcile.Action) bool { _, is := a.(reconcile.DeleteOperation); return is }),
		},
		{
			fault: "a finalizer is written without need", promise: "the world comes to rest",
			after: func(s *operation.Snapshot, p *reconcile.Plan) {
				for i := range s.Operations {
					o := &s.Operations[i]
					p.Actions = append(p.Actions, reconcile.SetFinalizers{Kind: names.KindOperation, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Finalizers: o.Finalizers})
				}
			},
		},
		{
			fault: "nothing is let go", promise: "no operation is held for ever",
			after: without(func(a reconcile.Action) bool {
				f, is := a.(reconcile.SetFinalizers)
				return is && len(f.Finalizers) == 0
			}),
		},
		{
			fault: "what fails counts as refused", promise: "what was refused has changed nothing",
			after: statuses(func(status map[string]any) {
				if status["phase"] == string(spec.OperationFailed) {
					status["startTime"] = nil
				}
			}),
		},
	}
}

// TestMutants shows that the promises would be noticed to be broken.
func TestMutants(t *testing.T) {
	for n := range uint64(100) {
		if v := lived(t, operation.Decide, n); v != nil {
			t.Fatalf("without a fault: %v", v)
		}
	}
	for _, m := range mutants() {
		t.Run(m.fault, func(t *testing.T) {
			t.Parallel()
			for n := range worldsOfMutants {
				// Another promise may notice it first, in this life or that.
				if v := lived(t, m.decide, n); v != nil && v.promise == m.promise {
					return
				}
			}
			t.Errorf("nobody notices; want %q", m.promise)
		})
	}
}

// lived is the promise that is broken first in the life of a number; nil if none is.
func lived(t *testing.T, decide func(operation.Snapshot) reconcile.Plan, number uint64) *violation {
	w := newWorld(t)
	r := rand.New(rand.NewPCG(number, 0))
	w.draw = func(_ string, n int) int { return r.IntN(n) }
	w.decide = decide
	return w.life()
}

// TestEveryPromiseHasAMutant finds the promises in the source of the world.
func TestEveryPromiseHasAMutant(t *testing.T) {
	made, broken := promises.Named(t), map[string]bool{}
	for _, m := range mutants() {
		broken[m.promise] = true
		if !slices.Contains(made, m.promise) {
			t.Errorf("%q breaks %q, which nobody has promised", m.fault, m.promise)
		}
	}
	for _, p := range made {
		if !broken[p] {
			t.Errorf("no mutant breaks %q", p)
		}
	}
}
