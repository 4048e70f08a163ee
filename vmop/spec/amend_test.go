package spec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// A valid machine is not amended. One of VM-Operator's is valid afterwards, is not
// amended again, and each finding of the strict rules has an amendment that names
// a field of the same part.
func TestAmend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.Foreign().Draw(t, "vm")
		spec.Default(vm)
		before, strict := vm.DeepCopy(), spec.Validate(vm)
		if errs := spec.ValidateStored(vm); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if diff := cmp.Diff(before, vm); diff != "" {
			t.Fatalf("the argument has changed: %s", diff)
		}
		done := spec.Amend(&vm.Spec)
		if (len(done) == 0) != (len(strict) == 0) || (len(done) == 0) != cmp.Equal(before, vm) {
			t.Fatalf("%v for %v", done, strict.ToAggregate())
		}
		for _, e := range strict {
			part := strings.TrimSuffix(strings.TrimSuffix(e.Field, ".currentCpus"), ".maximumCpus")
			if !slices.ContainsFunc(done, func(a spec.Amendment) bool { return strings.HasPrefix(a.Field, part) && a.Message != "" }) {
				t.Errorf("nothing is said of %v: %v", e, done)
			}
		}
		if errs := spec.Validate(vm); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		once := vm.DeepCopy()
		if again := spec.Amend(&vm.Spec); len(again) > 0 || !cmp.Equal(once, vm) {
			t.Fatalf("amended again: %v", again)
		}
	})
}

// What is taken for what.
func TestAmendments(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"{maximumCpus: 2, currentCpus: 4}", "spec.vm.maximumCpus: is 2 and taken for 4, because currentCpus is"},
		{"{maximumCpus: 2, currentCpus: 0}", "spec.vm.currentCpus: is 0 and taken for 1; it must be from 1 to 2147483647"},
		{"{maximumCpus: 1, maximumRam: 1Gi, currentRam: 2Gi}", "spec.vm.currentRam: is 2Gi and taken for maximumRam, which is 1Gi (1073741824 bytes)"},
		{"{maximumCpus: 1, currentRam: 2Gi}", "spec.vm.currentRam: is 2Gi and taken for maximumRam, which is 1G (1000000000 bytes)"},
		{"{maximumCpus: 1, display: {spice: {usbRedirects: 20}}}", "spec.vm.display.spice.usbRedirects: is 20 and taken for 14; it must be from 0 to 14"},
		{"{maximumCpus: 1, disks: [{cdrom: {image: a}, bootindex: -1}]}", "spec.vm.disks[0].bootindex: is -1 and taken for none, as QEMU does"},
		{"{maximumCpus: 1, powerdownTimeout: -5}", "spec.vm.powerdownTimeout: is -5 and taken for 0; it must be from 0 to 2147483"},
	} {
		vm := stored(t, "web", c.spec)
		if errs := spec.ValidateStored(vm); len(errs) > 0 {
			t.Errorf("%s: %v", c.spec, errs.ToAggregate())
		}
		done := spec.Amend(&vm.Spec)
		if len(done) != 1 || done[0].String() != c.want {
			t.Errorf("%s: %v", c.spec, done)
		}
	}
}

// What VM-Operator starts no machine with either is a finding that names the field.
func TestWhatIsNotAmendedIsFound(t *testing.T) {
	cd := "{cdrom: {image: a}}"
	for _, c := range []struct{ name, spec, want string }{
		{"a.b", "{maximumCpus: 1}", "metadata.name"},
		{strings.Repeat("a", 64), "{maximumCpus: 1}", "metadata.name"},
		{"web", "{maximumCpus: 1, networks: [{tap: {mac: 5254.0012.3456}}]}", "spec.vm.networks[0].tap.mac"},
		{"web", "{maximumCpus: 1, disks: [" + strings.Repeat(cd+", ", 6) + cd + "]}", "spec.vm.disks[6]"},
		{"web", "{maximumCpus: 5000}", "spec.vm.maximumCpus"},
		{"web", "{cpuTopology: {coresPerDie: 2}, currentCpus: 4}", "spec.vm.currentCpus"},
	} {
		errs := spec.ValidateStored(stored(t, c.name, c.spec))
		if len(errs) != 1 || errs[0].Field != c.want {
			t.Errorf("%s: %v", c.spec, errs.ToAggregate())
		}
	}
	if errs := spec.ValidateStored(stored(t, "9lives", "{maximumCpus: 1, networks: [{tap: {mac: 52-54-00-12-34-56}}]}")); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

// stored is a machine with its defaults, as an API server hands it out.
func stored(t *testing.T, name, vm string) *spec.VirtualMachine {
	t.Helper()
	o := loadOne(t, "stored.yaml", []byte("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: "+name+"}\nspec: {vm: "+vm+"}\n"))
	spec.Default(o.VirtualMachine)
	return o.VirtualMachine
}
