package machinetest

import (
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkDecide is a look at a machine of which nothing has changed.
func BenchmarkDecide(b *testing.B) {
	for _, name := range []string{"hello", "basic-vm.yaml"} {
		b.Run(name, func(b *testing.B) {
			s := converged(b, name)
			b.ReportAllocs()
			for b.Loop() {
				machine.Decide(s)
			}
		})
	}
}

// A look at a machine of which nothing has changed is what an operator does most.
func TestDecideAllocatesLittle(t *testing.T) {
	for name, most := range map[string]float64{"hello": 110, "basic-vm.yaml": 150} {
		s := converged(t, name)
		if n := testing.AllocsPerRun(10, func() { machine.Decide(s) }); n > most {
			t.Errorf("%s: %v allocations, want at most %v", name, n, most)
		}
	}
}

// converged is what is seen of a machine that runs as it should.
func converged(t testing.TB, name string) machine.Snapshot {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	if name != "hello" {
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec = fixture.Load(t, name).Spec
		vm.Spec.VM.State = spec.StateRunning
		w.put(theVM, vm)
		w.put("claim/"+names.ImageRepositoryClaim, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: names.ImageRepositoryClaim}})
	}
	for range 10 {
		w.work()
		w.pass(time.Second)
	}
	w.observeAll()
	s, _ := w.snapshot()
	if p := machine.Decide(s); len(p.Actions)+len(p.Statuses)+len(p.Events) > 0 || s.VM.Status.Phase != spec.PhaseRunning {
		t.Fatalf("the machine has not converged: %+v", p)
	}
	return s
}
