package manifest_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"
)

// A copy is the same, and shares nothing that is changed in it.
func TestCopySpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := rapid.OneOf(spectest.VirtualMachine(), spectest.Foreign()).Draw(t, "machine")
		before := vm.DeepCopy()
		var out spec.VirtualMachineSpec
		manifest.CopySpec(&vm.Spec, &out)
		if !equality.Semantic.DeepEqual(vm.Spec, out) {
			t.Fatalf("%+v became %+v", vm.Spec, out)
		}
		if out.CloudInit != nil {
			out.CloudInit.UserData, out.CloudInit.NetworkConfig = nil, nil
			for k := range out.CloudInit.MetaData {
				out.CloudInit.MetaData[k] = "other"
			}
		}
		spec.DefaultSpec(&out)
		spec.Amend(&out)
		spectest.Class().Draw(t, "class").Spec.Apply(&out)
		out.VM.Disks = append(out.VM.Disks[:0], spec.Disk{})
		if !equality.Semantic.DeepEqual(before, vm) {
			t.Fatalf("%+v became %+v", before, vm)
		}
	})
}
