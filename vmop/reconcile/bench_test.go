package reconcile_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
)

func BenchmarkRunnerConfig(b *testing.B) {
	vm := load(b, "basic-vm.yaml")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reconcile.RunnerConfig(vm, reconcile.RunnerConfigOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkObjects(b *testing.B) {
	vm, s := load(b, "basic-vm.yaml"), managerSettings()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reconcile.Objects(vm, s); err != nil {
			b.Fatal(err)
		}
	}
}
