package machinetest

import (
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
)

// TestPromises runs at least ten thousand steps with rapid's own number of
// checks.
func TestPromises(t *testing.T) { hold(t, &machinesWorld) }

// TestPromisesOfRunPolicies has the same promises, and those of run policies, where
// people use them.
func TestPromisesOfRunPolicies(t *testing.T)        { hold(t, &policiesWorld) }
func TestPromisesOfResizing(t *testing.T)           { hold(t, &resizingWorld) }
func TestPromisesOfClaims(t *testing.T)             { hold(t, &claimsWorld) }
func TestPromisesOfOrphans(t *testing.T)            { hold(t, &orphansWorld) }
func TestPromisesOfLabels(t *testing.T)             { hold(t, &labelsWorld) }
func TestPromisesOfDeletion(t *testing.T)           { hold(t, &deletionWorld) }
func TestPromisesOfClasses(t *testing.T)            { hold(t, &classesWorld) }
func TestPromisesOfDisksThatComeAndGo(t *testing.T) { hold(t, &hotWorld) }
func TestPromisesOfNames(t *testing.T)              { hold(t, &namesWorld) }
func TestPromisesOfHeldMachines(t *testing.T)       { hold(t, &heldWorld) }
func TestPromisesOfUserData(t *testing.T)           { hold(t, &userDataWorld) }
func TestPromisesOfDocuments(t *testing.T)          { hold(t, &documentsWorld) }

// hold has machine.Decide keep its promises in worlds of a kind.
func hold(t *testing.T, k *worldKind) {
	t.Helper()
	seed(t)
	t.Parallel()
	k.hold(t, decideOnLess)
}

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

// TestPromisesAreNoticed shows that the promises would be noticed to be broken.
func TestPromisesAreNoticed(t *testing.T) {
	for i := range worldKinds {
		k := &worldKinds[i]
		f, has := allFaults()[k.name]
		if !has {
			t.Errorf("%s: there are no mutants", k.name)
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			if v, found := k.broken(machine.Decide, 20); found {
				t.Fatalf("without a fault: %v", v)
			}
			for _, m := range f.mutants {
				t.Run(m.fault, func(t *testing.T) {
					t.Parallel()
					v, found := k.broken(m.decide, f.worlds)
					if !found {
						t.Fatalf("nobody notices; want %q", m.promise)
					}
					if v.name != m.promise && !slices.Contains(m.others(), v.name) {
						t.Errorf("it is noticed as %v; want %q", v, m.promise)
					}
				})
			}
		})
	}
}

// broken runs worlds of the kind until a promise is broken.
func (k *worldKind) broken(decide func(machine.Snapshot) reconcile.Plan, worlds uint64) (violation, bool) {
	for n := range worlds {
		w := k.create(random(n), decide)
		var v violation
		if errors.As(k.run(w, min(k.most, 150)), &v) {
			return v, true
		}
	}
	return violation{}, false
}

// random is a choice without rapid, which cannot be asked to expect a failure.
func random(n uint64) func(string, int) int {
	r := rand.New(rand.NewPCG(n, 0))
	return func(_ string, n int) int { return r.IntN(n) }
}

// TestEveryPromiseHasAMutant holds the promises against the mutants: one that
// no fault breaks may be one that nothing looks at, and a mutant's promise must be one.
func TestEveryPromiseHasAMutant(t *testing.T) {
	made := Promises()
	broken := map[string]bool{}
	for _, f := range allFaults() {
		for _, m := range f.mutants {
			broken[m.promise] = true
			for _, p := range append(m.others(), m.promise) {
				if !slices.Contains(made, p) {
					t.Errorf("%q breaks %q, which nobody has promised", m.fault, p)
				}
			}
		}
	}
	for _, p := range made {
		if !broken[p] {
			t.Errorf("no mutant breaks %q", p)
		}
	}
}

// Promises lists what the worlds look at, and nothing else.
func TestEveryPromiseIsListed(t *testing.T) { promises.Listed(t, Promises()) }
