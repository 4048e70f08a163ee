package machine_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"strconv"
	"strings"
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

// promisesHold runs drawn worlds of a kind for a drawn number of steps.
func promisesHold(t *testing.T, least, most int, create func(func(string, int) int, func(machine.Snapshot) reconcile.Plan) *world, run func(*world, int) error) {
	t.Helper()
	seed(t)
	t.Parallel()
	steps := 0
	rapid.Check(t, func(t *rapid.T) {
		w := create(drawn(t), decideOnLess)
		err := run(w, rapid.IntRange(least, most).Draw(t, "steps"))
		steps += w.operations
		if err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(w.log, "\n"))
		}
	})
	t.Logf("%d steps", steps)
}

// TestPromises runs at least ten thousand steps with rapid's own number of
// checks.
func TestPromises(t *testing.T) {
	promisesHold(t, 100, 250, newWorld, (*world).live)
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
	w.put(theVM, vm)
	return w
}

// TestPromisesOfRunPolicies has the same promises, and those of run policies, where
// people use them.
func TestPromisesOfRunPolicies(t *testing.T) {
	promisesHold(t, 50, 200, newPolicyWorld, (*world).live)
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

// broken runs worlds until a promise is broken.
func broken(decide func(machine.Snapshot) reconcile.Plan, worlds uint64, policies bool) (violation, bool) {
	for n := range worlds {
		kind := newWorld
		if policies {
			kind = newPolicyWorld
		}
		w := kind(random(n), decide)
		var v violation
		if errors.As(w.live(150), &v) {
			return v, true
		}
	}
	return violation{}, false
}
