package spec_test

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
)

// A CD drive needs a port of the SATA controller, of which there are six.
func TestMoreDrivesThanPlaces(t *testing.T) {
	cpus := int32(1)
	vm := &spec.VirtualMachine{}
	vm.Name = "vm"
	vm.Spec.VM.MaximumCPUs = &cpus
	for range 6 {
		vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{Cdrom: &spec.Cdrom{}})
	}
	if errs := spec.Validate(vm); len(errs) > 0 {
		t.Fatalf("six CD drives: %v", errs)
	}
	vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{Cdrom: &spec.Cdrom{}}, spec.Disk{Cdrom: &spec.Cdrom{}})
	errs := spec.Validate(vm)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "spec.vm.disks[6]") || !strings.Contains(errs[0].Error(), "6") {
		t.Fatalf("eight CD drives: %v; want one error at the seventh", errs)
	}
}
