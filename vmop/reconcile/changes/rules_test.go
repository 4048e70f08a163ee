package changes

import (
	"reflect"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
)

// Whoever adds a field decides whether it reaches a running machine.
func TestEveryFieldHasARule(t *testing.T) {
	want := map[string]bool{labels: true, annotations: true}
	fields(t, reflect.TypeFor[spec.VirtualMachineSpec](), "spec", want)
	have := map[string]bool{}
	for _, r := range rules {
		if have[r.pattern] {
			t.Errorf("%s has two rules", r.pattern)
		}
		have[r.pattern] = true
		if !want[r.pattern] {
			t.Errorf("%s has a rule and is no field, or one of which only the parts have rules", r.pattern)
		}
		if (r.applied == AppliedNever) != (r.reason != "") {
			t.Errorf("%s: what never takes effect needs a reason, and nothing else does", r.pattern)
		}
	}
	for p := range want {
		if !have[p] {
			t.Errorf("%s has no rule: say in rules.go whether a change of it reaches a running machine", p)
		}
	}
}

// fields collects the patterns of all fields that are no structures of package
// spec. Lists of such structures that Changes compares entry by entry count by
// their entries' fields, all others as one.
func fields(t *testing.T, s reflect.Type, at string, out map[string]bool) {
	for i := range s.NumField() {
		f := s.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			t.Fatalf("%s has a field %s without a JSON name", at, f.Name)
		}
		ft, path := f.Type, at+"."+name
		switch ft {
		case reflect.TypeFor[[]spec.Network](), reflect.TypeFor[[]spec.Disk](), reflect.TypeFor[[]spec.HostForward](), reflect.TypeFor[[]spec.BlockDeviceRef]():
			ft, path = ft.Elem(), path+"[]"
		}
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct && ft.PkgPath() == reflect.TypeFor[spec.Machine]().PkgPath() {
			fields(t, ft, path, out)
			continue
		}
		out[path] = true
	}
}

func TestStructuresAreLiveOnlyAsAWhole(t *testing.T) {
	for pattern, want := range map[string]Applied{
		"spec.loadBalancerService":              AppliedLive,
		"spec.cloudInit":                        AppliedRestart,
		"spec.vm.display.spice":                 AppliedRestart,
		"spec.vm.disks[]":                       AppliedRestart,
		"spec.vm.networks[]":                    AppliedRestart,
		"spec.nodeSelector[]":                   AppliedRestart,
		"metadata.labels[]":                     AppliedLive,
		"spec.vm.kernelBoot":                    AppliedRestart,
		"spec.vm.somethingNew":                  AppliedRestart,
		template + ".spec.resources.requests[]": AppliedNever,
	} {
		if got := tabled(pattern).applied; got != want {
			t.Errorf("%s is %s, want %s", pattern, got, want)
		}
	}
}
