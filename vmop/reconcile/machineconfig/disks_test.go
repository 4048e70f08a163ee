package machineconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestDisksCountTemplatesOnly(t *testing.T) {
	type names struct{ Name, Claim string }
	var got []names
	for _, d := range machineconfig.Disks(fixture.Load(t, "basic-vm.yaml")) {
		got = append(got, names{d.Name, d.Claim})
	}
	want := []names{{}, {}, {"system-disk", "test-vm-system-disk"}, {"disk-1", "test-vm-disk-1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDiskNamesAreDistinctLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		// Claims that look like the names of templates, and long ones.
		claim := rapid.StringMatching(`(claim-|disk-)?[a-z0-9]{1,70}(\.[a-z0-9]{1,70}){0,2}(-disk|-claim|-pvc|-0)?`)
		for i, name := range rapid.SliceOfNDistinct(claim, 0, 4, rapid.ID).Draw(t, "claims") {
			vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: name}})
			stem := strings.TrimSuffix(name, "-disk")
			if i > 0 || len(stem) > 50 || strings.Contains(stem, ".") {
				continue
			}
			vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{VolumeClaimTemplate: &spec.VolumeClaimTemplate{Metadata: spec.EmbeddedObjectMeta{Name: stem}}})
		}
		claimOf := map[string]string{}
		for _, d := range machineconfig.Disks(vm) {
			if d.IsCD() {
				if d.Name != "" || d.Claim != "" {
					t.Errorf("a CD drive is called %q", d.Name)
				}
				continue
			}
			if problems := validation.IsDNS1123Label(d.Name); len(problems) > 0 {
				t.Errorf("%q: %v", d.Name, problems)
			}
			if other, taken := claimOf[d.Name]; taken && other != d.Claim {
				t.Errorf("the disks of the claims %q and %q are both called %q", other, d.Claim, d.Name)
			}
			claimOf[d.Name] = d.Claim
		}
	})
}

func TestDisksOfClaims(t *testing.T) {
	for claim, want := range map[string]string{
		"data":                  "data-claim",
		"web-system-disk":       "web-system-disk-claim",
		strings.Repeat("x", 57): strings.Repeat("x", 57) + "-claim",
		strings.Repeat("x", 58): "5ef8b2e5e7a040f31df9cf316b81c923-pvc",
		"has.dots":              "6518480d4b78b58b22fa7a5f2daab90b-pvc",
	} {
		vm := &spec.VirtualMachine{}
		vm.Spec.VM.Disks = []spec.Disk{{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: claim}}}
		got := machineconfig.Disks(vm)[0]
		if got.Name != want || got.Claim != claim {
			t.Errorf("the disk of %q is called %q, want %q", claim, got.Name, want)
		}
	}
}

// A disk that exists by itself is behind the list, and the same to a guest as by its
// claim.
func TestDisksOfReferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		vm.Spec.BlockDeviceRefs = nil
		before := machineconfig.Disks(vm)
		byClaim := vm.DeepCopy()
		for i, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`ref[a-z0-9]{1,57}`), 0, 4, rapid.ID).Draw(t, "references") {
			r := spec.BlockDeviceRef{Kind: spec.KindDisk, Name: name}
			d := spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: name + "-vd"}}
			if rapid.Bool().Draw(t, "boot order") {
				d.Bootindex = new(int32(1000 + i))
				r.BootOrder = new(int32(1001 + i))
			}
			vm.Spec.BlockDeviceRefs = append(vm.Spec.BlockDeviceRefs, r)
			byClaim.Spec.VM.Disks = append(byClaim.Spec.VM.Disks, d)
		}
		got, want := machineconfig.Disks(vm), machineconfig.Disks(byClaim)
		if diff := cmp.Diff(before, got[:len(before)]); diff != "" {
			t.Errorf("what was there (-want +got):\n%s", diff)
		}
		for i := range got {
			if got[i].Name != want[i].Name || got[i].Claim != want[i].Claim || i >= len(before) && got[i].Field() != fmt.Sprintf("spec.blockDeviceRefs[%d]", i-len(before)) {
				t.Errorf("%+v, want %+v", got[i], want[i])
			}
			if b := want[i].Entry.Bootindex; b != nil && (got[i].Entry.Bootindex == nil || *got[i].Entry.Bootindex != *b) {
				t.Errorf("%s is not at %d in the boot order", got[i].Field(), *b)
			}
		}
	})
}

// On one host there are no disks of a cluster, and a file takes the place of one.
func TestReferencesOnOneHost(t *testing.T) {
	vm := spec.NewVirtualMachine("", "web")
	vm.Spec.VM.MaximumCPUs = new(int32(1))
	vm.Spec.BlockDeviceRefs = []spec.BlockDeviceRef{{Kind: spec.KindDisk, Name: "data"}}
	h := machineconfig.Host{DataDir: "/d", RuntimeDir: "/r"}
	_, err := machineconfig.ForHost(vm, h)
	if err == nil || !strings.Contains(err.Error(), `spec.blockDeviceRefs[0]: the VirtualDisk "data" exists in a cluster only: say which file or device it is here, data=PATH`) {
		t.Error(err)
	}
	h.Disks = map[string]string{"data": "/images/data.img"}
	c, err := machineconfig.ForHost(vm, h)
	if err != nil || len(c.Runner.VM.Drives) != 1 || c.Runner.VM.Drives[0].Where() != "/images/data.img" || c.Runner.VM.Drives[0].Name != "data-vd-claim" {
		t.Errorf("%+v, %v", c.Runner.VM.Drives, err)
	}
}
