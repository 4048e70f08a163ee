package spec_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/spec"
)

func BenchmarkValidate(b *testing.B) {
	vm := loadBench(b).VirtualMachine
	for b.Loop() {
		if errs := spec.Validate(vm); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	data := loadBench(b).Raw
	for b.Loop() {
		if _, err := spec.Load("vm.yaml", data, spec.Options{Default: true, Validate: true}); err != nil {
			b.Fatal(err)
		}
	}
}

func loadBench(b *testing.B) spec.Object {
	const manifest = `apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: vm}
spec:
  vm:
    maximumCpus: 4
    currentCpus: 2
    maximumRam: 8Gi
    networks: [{user: {}}]
    disks:
    - volumeClaimTemplate:
        metadata: {name: system}
        spec: {resources: {requests: {storage: 40Gi}}}
    - cdrom: {image: cd.iso}
`
	objects, err := spec.Load("vm.yaml", []byte(manifest), spec.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return objects[0]
}
