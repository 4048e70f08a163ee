package operationtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// Of each machine the newest finished operations are kept, as many and as long as is
// said: those of one in another namespace that has its name count for nothing, and are
// not touched, though they have the same names.
func TestCleanUpIsForEachMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.cleanup = operation.Cleanup{Keep: rapid.IntRange(1, 4).Draw(t, "keep"), For: time.Hour}
		all := []string{"a", "shop/a", "b"}
		ended := map[string]map[string]time.Time{}
		for _, name := range all {
			w.addMachine(name, spec.RunPolicyManual, spec.PhaseStopped)
			ended[name] = map[string]time.Time{}
			letter := strings.TrimPrefix(name, "shop/") // equal names in both namespaces
			for i, minutes := range rapid.SliceOfNDistinct(rapid.IntRange(1, 90), 0, 7, rapid.ID[int]).Draw(t, "minutes ago") {
				op, at := fmt.Sprintf("%s%d", letter, i), noon.Add(-time.Duration(minutes)*time.Minute)
				w.finished(op, name, at)
				ended[name][neighbour(name, op)] = at
			}
		}
		defer func() {
			if v := recover(); v != nil {
				t.Fatalf("%v\n%s", v, strings.Join(w.Log, "\n"))
			}
		}()
		for _, name := range rapid.Permutation(all).Draw(t, "order") {
			w.run(name)
		}
		for _, name := range all {
			newest := slices.SortedFunc(maps.Keys(ended[name]), func(x, y string) int { return ended[name][y].Compare(ended[name][x]) })
			for i, op := range newest {
				keep := i < w.cleanup.Keep && w.Now.Before(ended[name][op].Add(w.cleanup.For))
				if kept := w.truth.ops[op] != nil; kept != keep {
					t.Fatalf("%s, number %d of %s by age, is kept: %t, want %t\n%s", op, i, name, kept, keep, strings.Join(w.Log, "\n"))
				}
			}
		}
	})
}

// A look at operations that goes by the machine's name alone is noticed.
func TestCleanUpByNameAloneIsNoticed(t *testing.T) {
	w := newWorld()
	w.cleanup = operation.Cleanup{Keep: 1, For: time.Hour}
	w.machineOf = func(o *spec.VirtualMachineOperation) string { return o.Spec.VirtualMachineName }
	for i, name := range []string{"a", "shop/a"} { // that of the other namespace is newer
		w.addMachine(name, "", spec.PhaseStopped)
		w.finished("x", name, noon.Add(time.Minute*time.Duration(i-2)))
	}
	w.see(3)
	defer func() {
		if v, is := recover().(promises.Violation); !is || v.Promise != "what is new is not cleaned up" {
			t.Errorf("nobody notices (%v)", v)
		}
	}()
	w.reconcile("a", -1)
}

// finished adds an operation that has ended.
func (w *world) finished(name, vm string, at time.Time) {
	o := w.addOperation(name, vm, spec.OperationStart, false)
	o.CreationTimestamp = metav1.NewTime(at.Add(-time.Minute))
	o.Status.Phase, o.Status.CompletionTime = spec.OperationCompleted, &metav1.Time{Time: at}
}
