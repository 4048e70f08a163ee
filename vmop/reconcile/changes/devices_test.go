package changes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	"pgregory.net/rapid"
)

// withPlugged is a machine with further disks anywhere in its lists.
func withPlugged(t *rapid.T, vm *spec.VirtualMachine, claims []string) *spec.VirtualMachine {
	vm = vm.DeepCopy()
	for _, c := range claims {
		if c[0] == 'd' {
			at := rapid.IntRange(0, len(vm.Spec.VM.Disks)).Draw(t, "at")
			vm.Spec.VM.Disks = slices.Insert(vm.Spec.VM.Disks, at, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: c}})
		} else {
			at := rapid.IntRange(0, len(vm.Spec.BlockDeviceRefs)).Draw(t, "at")
			vm.Spec.BlockDeviceRefs = slices.Insert(vm.Spec.BlockDeviceRefs, at, spec.BlockDeviceRef{Kind: spec.KindDisk, Name: c})
		}
	}
	return vm
}

// Disks that are plugged have no place among the others: they come and go, and nothing
// else becomes another thing by that.
func TestPluggedDisksHaveNoPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"d1", "d2", "r1", "r2"}), 0, 4, rapid.ID).Draw(t, "plugged")
		var claims []string
		for _, n := range names {
			if n[0] == 'r' {
				n = spec.VirtualDiskClaimName(n)
			}
			claims = append(claims, n)
		}
		o := changes.Options{PlugsDisks: true, Plugged: claims}
		one, other := withPlugged(t, vm, names), withPlugged(t, vm, names)
		if got := changes.Between(one, other, o); len(got) > 0 {
			t.Errorf("they are in another order: %v", got)
		}
		for what, got := range map[string][]changes.Change{spec.OperationAdd: changes.Between(vm, one, o), spec.OperationRemove: changes.Between(one, vm, o)} {
			if len(got) != len(names) {
				t.Errorf("%s: %v", what, got)
			}
			for _, c := range got {
				if c.Operation != what || c.Applied != changes.AppliedLive || !c.IsDisk() {
					t.Errorf("%s: %v", what, c)
				}
			}
		}
	})
}

// Disks come and go while a machine runs only if nothing else waits for its restart, and
// never before its other disks.
func TestDisksComeAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := twoManifests(t)
		if rapid.Bool().Draw(t, "only disks") {
			new.Spec = *old.Spec.DeepCopy()
			new.Spec.BlockDeviceRefs = nil
			old.Spec.BlockDeviceRefs = nil
			new.Spec.VM.Disks = append(new.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "more"}})
		}
		waits, comes := false, false
		for _, c := range changes.Between(old, new, changes.Options{PlugsDisks: true, Plugged: []string{"b-vd"}}) {
			waits = waits || c.Applied == changes.AppliedRestart
			if c.IsDisk() && c.Applied == changes.AppliedLive && !strings.Contains(string(c.NewValue), `"name":"b"`) {
				comes = true
			}
		}
		if waits && comes {
			t.Errorf("a disk comes, and something else waits: %v", changes.Between(old, new, changes.Options{PlugsDisks: true}))
		}
	})
}

func TestPluggable(t *testing.T) {
	claim := func(name string) spec.Disk {
		return spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: name}}
	}
	first := claim("first")
	first.Bootindex = new(int32(1))
	ref := func(name string) spec.BlockDeviceRef {
		return spec.BlockDeviceRef{Kind: spec.KindDisk, Name: name}
	}
	for _, c := range []struct {
		name  string
		disks []spec.Disk
		refs  []spec.BlockDeviceRef
		want  bool
	}{
		{"the first disk", []spec.Disk{claim("x")}, nil, false},
		{"behind another one", []spec.Disk{claim("a"), claim("x")}, nil, true},
		{"behind a CD drive", []spec.Disk{{Cdrom: &spec.Cdrom{}}, claim("x")}, nil, false},
		{"before others", []spec.Disk{claim("a"), claim("x")}, []spec.BlockDeviceRef{ref("b")}, false},
		{"before others, where an order is said", []spec.Disk{first, claim("x")}, []spec.BlockDeviceRef{ref("b")}, true},
		{"at a place in the order", []spec.Disk{claim("a"), {PersistentVolumeClaim: claim("x").PersistentVolumeClaim, Bootindex: new(int32(1))}}, nil, false},
		{"no disk of the machine", []spec.Disk{claim("a")}, nil, false},
	} {
		vm := spec.NewVirtualMachine("", "vm")
		vm.Spec.VM.Disks, vm.Spec.BlockDeviceRefs = c.disks, c.refs
		if got := changes.Pluggable(vm, "x"); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	vm := spec.NewVirtualMachine("", "vm")
	vm.Spec.BlockDeviceRefs = []spec.BlockDeviceRef{ref("a"), ref("b"), {Kind: spec.KindImage, Name: "c"}, {Kind: spec.KindDisk, Name: "d", BootOrder: new(int32(1))}}
	for claim, want := range map[string]bool{"a-vd": false, "b-vd": true, "c-vi": false, "d-vd": false} {
		if got := changes.Pluggable(vm, claim); got != want {
			t.Errorf("%s: %v", claim, got)
		}
	}
}

// Where the old manifest is what the machine runs with, and nothing else waits, a proposal
// is a difference like any other.
func TestProposedOfWhatRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := twoManifests(t)
		pod := changes.StartedWith(old)
		for _, c := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a-vd", "b-vd", "c-vd"}), 0, 2, rapid.ID).Draw(t, "attached") {
			pod.Attachments = append(pod.Attachments, changes.Attachment{Name: "of-" + c, Claim: c, Own: rapid.Bool().Draw(t, "own")})
		}
		o := changes.Options{Pod: pod}
		want := changes.Between(old, new, o)
		var waits []spec.AwaitingChange
		for i := range want {
			if want[i].Applied == changes.AppliedRestart {
				waits = append(waits, want[i].Awaiting())
			}
		}
		got := changes.Proposed(old, new, waits, o)
		for i := range want {
			if len(got) != len(want) || got[i].String() != want[i].String() {
				t.Fatalf("%v, want %v", got, want)
			}
		}
		// And back again nothing waits.
		for _, c := range changes.Proposed(new, old, nil, o) {
			if c.Applied == changes.AppliedRestart {
				t.Errorf("%v waits for what runs", c)
			}
		}
	})
}
