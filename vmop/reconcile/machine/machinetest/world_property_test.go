package machinetest

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	"pgregory.net/rapid"
)

// seed makes the seed of the property tests known also when they pass: run with
// -rapid.seed to repeat.
func seed(t *testing.T) {
	f := flag.Lookup("rapid.seed")
	if f.Value.String() == "0" {
		if err := f.Value.Set(strconv.FormatInt(time.Now().UnixNano(), 10)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("-rapid.seed=%s", f.Value)
}

// live runs a world for a number of steps and until it settles.
func (w *world) live(steps int) error {
	return w.guarded(func() {
		for range steps {
			w.step()
		}
		w.linger()
		w.settle()
	})
}

// guarded lets something happen and returns the promise that it breaks.
func (w *world) guarded(what func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case violation:
			err = v
		default:
			panic(v)
		}
	}()
	what()
	return nil
}

// newPolicyWorld is a world in which people use run policies.
func newPolicyWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := newWorld(choose, decide)
	w.policies = true
	vm := get[*spec.VirtualMachine](w, theVM)
	if n := choose("policy at first", len(runPolicies)+1); n > 0 {
		vm.Spec.RunPolicy = runPolicies[n-1]
	}
	if choose("approves at first", 2) == 1 {
		vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
	}
	if choose("has a Secret", 2) == 1 {
		vm.Spec.CloudInit = userDataFrom("web-init")
		w.provide(vm)
	}
	w.put(theVM, vm)
	return w
}

// drawn is a choice that rapid makes.
func drawn(t *rapid.T) func(string, int) int {
	return func(what string, n int) int {
		if n == 1 {
			return 0
		}
		return rapid.IntRange(0, n-1).Draw(t, what)
	}
}

// random is a choice without rapid, which cannot be asked to expect a failure.
func random(n uint64) func(string, int) int {
	r := rand.New(rand.NewPCG(n, 0))
	return func(_ string, n int) int { return r.IntN(n) }
}
