package changes

import (
	"slices"
	"testing"
)

// The public table is what decisions are made by, and nobody's to change.
func TestFields(t *testing.T) {
	fields := Fields()
	for _, f := range fields {
		if r := tabled(f.Path); r.applied != f.Applied || r.reason != f.Reason {
			t.Errorf("%+v, and the table says %+v", f, r)
		}
	}
	for path, want := range map[string]Applied{"spec.vm.currentCpus": AppliedLive, "spec.vm.usbDevices": AppliedLive, "spec.vm.firmware": AppliedRestart} {
		if i := slices.IndexFunc(fields, func(f Field) bool { return f.Path == path }); i < 0 || fields[i].Applied != want {
			t.Errorf("%s is not %s", path, want)
		}
	}
	fields[0].Applied = AppliedNever
	if Fields()[0].Applied == AppliedNever {
		t.Error("the table can be changed")
	}
}
