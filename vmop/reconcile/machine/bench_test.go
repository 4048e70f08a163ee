package machine_test

import (
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
)

func BenchmarkRunnerConfig(b *testing.B) {
	vm := fixture.Load(b, "basic-vm.yaml")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := machineconfig.ForCluster(vm, machineconfig.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkObjects(b *testing.B) {
	vm, s := fixture.Load(b, "basic-vm.yaml"), managerSettings()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := machine.Objects(vm, s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecide is a look at a machine of which nothing has changed.
func BenchmarkDecide(b *testing.B) {
	for _, name := range []string{"hello", "basic-vm.yaml"} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(func(string, int) int { return 0 }, machine.Decide)
			if name != "hello" {
				vm := get[*spec.VirtualMachine](w, theVM)
				vm.Spec = fixture.Load(b, name).Spec
				vm.Spec.VM.State = spec.StateRunning
				w.put(theVM, vm)
			}
			for range 10 {
				w.work()
				w.pass(time.Second)
			}
			w.observeAll()
			s, _ := w.snapshot()
			if p := machine.Decide(s); len(p.Actions)+len(p.Statuses)+len(p.Events) > 0 || s.VM.Status.Phase != spec.PhaseRunning {
				b.Fatalf("the machine has not converged: %+v", p)
			}
			b.ReportAllocs()
			for b.Loop() {
				machine.Decide(s)
			}
		})
	}
}
