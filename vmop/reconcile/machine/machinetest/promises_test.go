package machinetest

import (
	"slices"
	"testing"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/reconcile/machine"
)

// TestMutants shows that the promises would be noticed to be broken.
func TestMutants(t *testing.T) {
	for name, k := range worldKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if v, found := k.broken(machine.Decide, 20); found {
				t.Fatalf("without a fault: %v", v)
			}
			for _, m := range k.mutants {
				t.Run(m.fault, func(t *testing.T) {
					t.Parallel()
					v, found := k.broken(m.decide, k.worlds)
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

// TestEveryPromiseHasAMutant finds the promises in the source of the worlds: one that
// no fault breaks may be one that nothing looks at, and a mutant's promise must be one.
func TestEveryPromiseHasAMutant(t *testing.T) {
	made := promises.Named(t)
	broken := map[string]bool{}
	for _, k := range worldKinds() {
		for _, m := range k.mutants {
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
