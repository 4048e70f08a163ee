package spec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
)

func referring(refs ...spec.BlockDeviceRef) *spec.VirtualMachine {
	vm := &spec.VirtualMachine{}
	vm.Name = "vm"
	vm.Spec.VM.MaximumCPUs = new(int32(1))
	vm.Spec.BlockDeviceRefs = refs
	spec.Default(vm)
	return vm
}

func TestBlockDevicesAreValidated(t *testing.T) {
	disk := func(name string, order ...int32) spec.BlockDeviceRef {
		r := spec.BlockDeviceRef{Kind: spec.KindDisk, Name: name}
		if len(order) > 0 {
			r.BootOrder = &order[0]
		}
		return r
	}
	var many []spec.BlockDeviceRef
	for i := range 17 {
		many = append(many, disk(fmt.Sprintf("d%d", i)))
	}
	for says, vm := range map[string]*spec.VirtualMachine{
		"":                                   referring(many[:16]...),
		"spec.blockDeviceRefs: Too many: 17": referring(many...),
		"spec.blockDeviceRefs[1].name: Invalid value: \"a\": is the same disk as that of":                               referring(disk("a"), disk("a")),
		"spec.blockDeviceRefs[0].kind: Invalid value: \"ClusterVirtualImage\": is of no namespace: make a VirtualImage": referring(spec.BlockDeviceRef{Kind: "ClusterVirtualImage", Name: "a"}),
		"spec.blockDeviceRefs[2].name: Invalid value: \"a\": is the same disk as that of spec.blockDeviceRefs[1]":       referring(disk("a"), spec.BlockDeviceRef{Kind: "VirtualImage", Name: "a"}, spec.BlockDeviceRef{Kind: "VirtualImage", Name: "a"}),
		"spec.blockDeviceRefs[0].kind: Unsupported value: \"Disk\"":                                                     referring(spec.BlockDeviceRef{Kind: "Disk", Name: "a"}),
		"spec.blockDeviceRefs[0].name: Required value":                                                                  referring(disk("")),
		"spec.blockDeviceRefs[0].name: Invalid value: \"A\"":                                                            referring(disk("A")),
		"spec.blockDeviceRefs[1].bootOrder: Invalid value: 2: is also that of spec.blockDeviceRefs[0]":                  referring(disk("a", 2), disk("b", 2)),
		"spec.blockDeviceRefs[0].bootOrder: Invalid value: 0: must be at least 1":                                       referring(disk("a", 0)),
	} {
		errs := spec.Validate(vm)
		if got := errs.ToAggregate(); says == "" && got != nil || says != "" && (got == nil || !strings.Contains(got.Error(), says)) {
			t.Errorf("%v, want %q", got, says)
		}
	}
	vm := referring(disk("a"))
	vm.Spec.VM.Disks = []spec.Disk{{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "a-vd"}}}
	if errs := spec.Validate(vm); len(errs) != 1 || !strings.Contains(errs[0].Error(), "is the same disk as that of spec.vm.disks[0]") {
		t.Errorf("the same disk by its claim: %v", errs)
	}
	vm = referring(disk("a", 1))
	vm.Spec.VM.Disks = []spec.Disk{{Cdrom: &spec.Cdrom{}, Bootindex: new(int32(0))}}
	if errs := spec.Validate(vm); len(errs) != 1 || !strings.Contains(errs[0].Error(), "is also that of spec.vm.disks[0]") {
		t.Errorf("the same place by a bootindex: %v", errs)
	}
}

// What says where it comes in the boot order comes there, and all else in the order of
// the list behind it; no place is given twice.
func TestBootOrderOfBlockDevices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &spec.VirtualMachineSpec{}
		places := rapid.SliceOfNDistinct(rapid.Int32Range(0, 20), 0, 8, rapid.ID).Draw(t, "places")
		next := func() *int32 {
			if len(places) == 0 || !rapid.Bool().Draw(t, "given") {
				return nil
			}
			p := places[0]
			places = places[1:]
			return &p
		}
		var given []int32
		for range rapid.IntRange(0, 4).Draw(t, "disks") {
			d := spec.Disk{Cdrom: &spec.Cdrom{}, Bootindex: next()}
			if d.Bootindex != nil {
				given = append(given, *d.Bootindex)
			}
			s.VM.Disks = append(s.VM.Disks, d)
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "references") {
			r := spec.BlockDeviceRef{Kind: spec.KindDisk, Name: fmt.Sprint(i)}
			if p := next(); p != nil {
				r.BootOrder = new(*p + 1)
				given = append(given, *p)
			}
			s.BlockDeviceRefs = append(s.BlockDeviceRefs, r)
		}
		got := spec.BlockDeviceBootIndexes(s)
		if len(given) == 0 {
			if got != nil {
				t.Fatalf("%v, and nothing is given", got)
			}
			return
		}
		last := slices.Max(given)
		for i, r := range s.BlockDeviceRefs {
			switch {
			case got[i] == nil:
				t.Errorf("%d has no place", i)
			case r.BootOrder != nil && *got[i] != *r.BootOrder-1:
				t.Errorf("%d is at %d, want %d", i, *got[i], *r.BootOrder-1)
			case r.BootOrder == nil && *got[i] != last+1:
				t.Errorf("%d is at %d, want %d", i, *got[i], last+1)
			}
			if r.BootOrder == nil {
				last++
			}
		}
	})
}
