package qemucmd

import (
	"slices"
	"strconv"
	"strings"
)

// ChooseMachineType decides which of the machine types that a QEMU offers a machine starts with.
// The rule keeps the guest's hardware stable while QEMU is upgraded:
//
//   - a versioned desired type is taken; this is the only way to move a machine;
//   - without one ("" or "q35"), the recorded type of earlier starts is taken;
//   - without either, the newest q35 is taken.
//
// The caller records the name of the result; if the desired type is later unset, the machine keeps
// it. A type that is not offered is an [*Error], whose field is "type" or "recordedType" as in
// [Machine]; no other type is taken in its place.
func ChooseMachineType(desired, recorded string, offered []MachineType) (MachineType, error) {
	if !namesVersion(desired) {
		desired = ""
	}
	name, field := desired, "type"
	if name == "" {
		name, field = recorded, "recordedType"
	}
	if name == "" {
		newest, found := newestQ35(offered)
		if !found {
			return MachineType{}, &Error{Field: "host.machineTypes", Message: "QEMU offers no q35 machine type"}
		}
		return newest, nil
	}
	var names []string
	for _, t := range offered {
		if t.Name == name {
			if !q35(t) {
				return t, &Error{Field: field, Message: quoted(name) + " is no q35 machine: the standard machine's devices have q35's addresses"}
			}
			return t, nil
		}
		if q35(t) {
			names = append(names, t.Name)
		}
	}
	message := "QEMU does not offer the machine type " + quoted(name) + "; it offers " + list(names)
	if field == "recordedType" {
		message = "the machine has the type " + quoted(name) + " since an earlier start, and this QEMU does not offer it any more; it offers " + list(names) +
			". Run it with an older QEMU, or set vm.machineType (spec.vm.machineType of a VirtualMachine) to move it: the guest then sees other hardware"
	}
	return MachineType{Name: name}, &Error{Field: field, Message: message}
}

func quoted(s string) string { return strconv.Quote(s) }

func namesVersion(desired string) bool { return desired != "" && desired != "q35" }

func q35(t MachineType) bool { return t.Alias == "q35" || strings.HasPrefix(t.Name, "pc-q35-") }

func newestQ35(types []MachineType) (MachineType, bool) {
	var candidates []MachineType
	for _, t := range types {
		if !q35(t) {
			continue
		}
		if t.Alias == "q35" {
			return t, true
		}
		candidates = append(candidates, t)
	}
	if len(candidates) == 0 {
		return MachineType{}, false
	}
	return slices.MaxFunc(candidates, func(x, y MachineType) int {
		return slices.Compare(typeVersion(x.Name), typeVersion(y.Name))
	}), true
}

func typeVersion(name string) []int {
	var v []int
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "pc-q35-"), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		v = append(v, n)
	}
	return v
}

func (b *builder) chooseMachineType() MachineType {
	b.text("type", b.m.Type)
	b.text("recordedType", b.m.RecordedType)
	t, err := ChooseMachineType(b.m.Type, b.m.RecordedType, b.h.MachineTypes)
	if err != nil {
		b.errs = append(b.errs, err)
		return t
	}
	if t.Deprecated {
		b.warnings = append(b.warnings, "the machine type "+t.Name+" is deprecated in QEMU "+b.h.Version.String()+
			": a later QEMU will not offer it; vm.machineType (spec.vm.machineType of a VirtualMachine) moves the machine to another one, which changes the guest's hardware")
	}
	return t
}
