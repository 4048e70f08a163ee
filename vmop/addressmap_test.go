package vmop_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// A new machine has places for as many disks as a manifest may have, whichever map
// of addresses that takes.
func TestRenderAsManyDisksAsThereMayBe(t *testing.T) {
	for n := limits.MaxDisks - 20; n <= limits.MaxDisks; n++ {
		vm := &spec.VirtualMachine{}
		vm.Name = "web"
		vm.Spec.VM.MaximumCPUs = new(int32(1))
		vm.Spec.VM.MaximumRAM = new(resource.MustParse("1Gi"))
		for i := range n {
			vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: fmt.Sprintf("disk-%d", i)}})
		}
		spec.Default(vm)
		if errs := spec.Validate(vm); len(errs) > 0 {
			t.Fatal(n, errs)
		}
		if _, err := vmop.Render(vm, vmop.RenderOptions{}); err != nil {
			t.Fatal(n, err)
		}
	}
}
