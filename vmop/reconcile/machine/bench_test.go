package machine_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
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
