package pooltest

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type mutant = promises.Mutant[pool.Snapshot]

// own has objects that a mutant may change.
func own(s pool.Snapshot) pool.Snapshot {
	machines, pools := s.Machines, s.Pools
	s.Machines, s.Pools = nil, nil
	for i := range machines {
		s.Machines = append(s.Machines, *machines[i].DeepCopy())
	}
	for i := range pools {
		s.Pools = append(s.Pools, *pools[i].DeepCopy())
	}
	s.Unreadable, s.Members = slices.Clone(s.Unreadable), slices.Clone(s.Members)
	return s
}

// changed is a mutant that sees machines otherwise than they are.
func changed(change func(*spec.VirtualMachine)) func(*pool.Snapshot) {
	return func(s *pool.Snapshot) {
		for i := range s.Machines {
			change(&s.Machines[i])
		}
	}
}

// retained is a mutant that sees pools with another retention.
func retained(retention string) func(*pool.Snapshot) {
	return func(s *pool.Snapshot) {
		for i := range s.Pools {
			s.Pools[i].Spec.Retention = retention
		}
	}
}

// patched is a mutant's plan with its writes changed.
func patched(change func(*reconcile.Patch)) func(*pool.Snapshot, *reconcile.Plan) {
	return func(_ *pool.Snapshot, p *reconcile.Plan) {
		for i, a := range p.Actions {
			patch := a.(reconcile.Patch)
			change(&patch)
			p.Actions[i] = patch
		}
	}
}

func mutants() []mutant {
	return []mutant{
		{
			Fault: "a plan depends on how often it is asked for", Promise: "equal snapshots give equal plans",
			After: func() func(*pool.Snapshot, *reconcile.Plan) {
				var asked atomic.Int64
				return func(s *pool.Snapshot, p *reconcile.Plan) {
					p.Wake = s.Now.Add(time.Duration(asked.Add(1)) * time.Hour)
				}
			}(),
		},
		{
			Fault: "the snapshot is changed", Promise: "a snapshot is not changed",
			After: func(s *pool.Snapshot, _ *reconcile.Plan) {
				for i := range s.Machines {
					s.Machines[i].Labels = map[string]string{"seen": "yes"}
				}
			},
		},
		{
			Fault: "a specification is written", Promise: "only assignments are written",
			After: patched(func(p *reconcile.Patch) { p.Subresource = "" }),
		},
		{
			Fault: "a write has no version", Promise: "a write says what it was decided on",
			After: patched(func(p *reconcile.Patch) { p.ResourceVersion = "" }),
		},
		{
			Fault: "nobody sees who is at a console", Promise: "a machine that is used is not taken",
			Before: changed(func(vm *spec.VirtualMachine) {
				if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionConsoleConnected); c != nil {
					c.Status = metav1.ConditionFalse
				}
			}),
		},
		{
			Fault: "nothing is kept for a user", Promise: "nobody loses a machine that is theirs",
			Before: retained("PT0S"),
		},
		{
			Fault: "a pool that cannot be understood is none", Promise: "nobody loses a machine that is theirs",
			Before: func(s *pool.Snapshot) { s.Unreadable = nil },
		},
		{
			Fault: "each pool that cannot be understood is new", Promise: "an unreadable pool is told of once",
			Before: func(s *pool.Snapshot) {
				for i := range s.Unreadable {
					s.Unreadable[i].Told = false
				}
			},
		},
		{
			Fault: "nothing is told", Promise: "an unreadable pool is told of",
			After: func(_ *pool.Snapshot, p *reconcile.Plan) { p.Events = nil },
		},
		{
			Fault: "nobody sees that users leave", Promise: "the last use of a machine is known",
			Before: changed(func(vm *spec.VirtualMachine) { vm.Status.ConsoleUser = "" }),
		},
		{
			Fault: "each machine of a user is the only one", Promise: "a user has one machine of a pool",
			Before: func(s *pool.Snapshot) {
				for i := range s.Machines {
					// Each is of a pool of its own, with the same retention.
					a, all := s.Machines[i].Status.Assignment, len(s.Pools)
					for _, p := range s.Pools[:all] {
						if p.Name == a.Pool {
							a.Pool += "-" + s.Machines[i].Name
							p.Name = a.Pool
							s.Pools = append(s.Pools, p)
						}
					}
				}
			},
		},
		{
			Fault: "nothing expires", Promise: "what has expired is free",
			Before: retained("nobody knows"),
		},
		{
			Fault: "nobody looks again", Promise: "what has expired is free",
			After: func(_ *pool.Snapshot, p *reconcile.Plan) { p.Wake = time.Time{} },
		},
		{
			Fault: "every pool is there for ever", Promise: "an assignment ends with its pool",
			Before: func(s *pool.Snapshot) {
				for i := range s.Machines {
					p := newPool(s.Machines[i].Status.Assignment.Pool, "PT1H")
					p.Namespace = s.Machines[i].Namespace
					known := func(o spec.VmPool) bool { return o.Name == p.Name }
					if !slices.ContainsFunc(s.Pools, known) {
						p.Spec.Retention = "nobody knows"
						s.Pools = append(s.Pools, p)
					}
				}
			},
		},
		{
			Fault: "nobody knows when a pool was counted", Promise: "a pool is counted anew after five seconds",
			Before: func(s *pool.Snapshot) {
				for i := range s.Pools {
					s.Pools[i].Status.Counted = nil
				}
			},
		},
		{
			Fault: "what goes is free", Promise: "the sizes of a pool are true",
			Before: func(s *pool.Snapshot) {
				for i := range s.Members {
					s.Members[i].Goes = false
				}
			},
		},
		{
			Fault: "refusals are forgotten", Promise: "what was refused is not repeated at once",
			Before: func(s *pool.Snapshot) { s.Failures = nil },
		},
		{
			Fault: "each assignment is written again", Promise: "the world comes to rest",
			After: func(s *pool.Snapshot, p *reconcile.Plan) {
				for i := range s.Machines {
					vm := &s.Machines[i]
					u := pool.Update{Namespace: vm.Namespace, Name: vm.Name, UID: vm.UID, ResourceVersion: vm.ResourceVersion, Assignment: vm.Status.Assignment}
					p.Actions = append(p.Actions, u.Action())
				}
			},
		},
	}
}

func kind() *promises.Kind[pool.Snapshot] {
	return &promises.Kind[pool.Snapshot]{
		Decide: pool.Decide, Own: own, Mutants: mutants(),
		Live: func(_ *testing.T, draw func(string, int) int, decide func(pool.Snapshot) reconcile.Plan) *promises.Violation {
			w := newWorld()
			w.Draw, w.Decide = draw, decide
			return w.life()
		},
	}
}

func TestPromisesOfPools(t *testing.T) { TestDecide(t, pool.Decide) }

// TestPromisesAreNoticed shows that the promises would be noticed to be broken.
func TestPromisesAreNoticed(t *testing.T) { kind().Break(t) }

// TestEveryPromiseHasAMutant finds the promises in the source of the world.
func TestEveryPromiseHasAMutant(t *testing.T) { kind().Registered(t) }

// Promises lists what the world looks at, and nothing else.
func TestEveryPromiseIsListed(t *testing.T) { promises.Listed(t, Promises()) }
