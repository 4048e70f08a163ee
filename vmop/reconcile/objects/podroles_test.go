package objects

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// Whatever a status says of a machine's pods, at most one of them may report; the active
// one may, one that is there and not active may not, and the pod that people are led to is
// no other than the one that reports.
func TestOneRunnerMayReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pod struct {
			name string
			uid  types.UID
		}
		vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		// The pods that there are have different names; the status may name former ones.
		var all []pod
		for i, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"web", "web-1", "web-2", "db"}), 1, 4, rapid.ID[string]).Draw(t, "names") {
			all = append(all, pod{name, types.UID(fmt.Sprint("uid-", i))})
		}
		listed := append(slices.Clone(all), pod{"web", "former"}, pod{"web-1", "former-1"})
		listed = rapid.SliceOfNDistinct(rapid.SampledFrom(listed), 0, 4, rapid.ID[pod]).Draw(t, "listed")
		active := rapid.IntRange(-1, len(listed)-1).Draw(t, "active")
		for i, p := range listed {
			vm.Status.VirtualMachinePods = append(vm.Status.VirtualMachinePods, spec.VirtualMachinePod{Name: p.name, UID: p.uid, Active: i == active})
		}
		var may []pod
		for _, p := range all {
			is := MayReport(vm, p.name, p.uid)
			if is {
				may = append(may, p)
			}
			switch at := slices.Index(listed, p); {
			case at >= 0 && is != (at == active):
				t.Errorf("%+v is in the status, and may report: %v", p, is)
			case len(listed) == 0 && is != (p.name == "web"):
				t.Errorf("%+v is in no status, and may report: %v", p, is)
			case at < 0 && is && p.name != "web":
				t.Errorf("%+v is neither in the status nor has the machine's name, and may report", p)
			}
		}
		if len(may) > 1 {
			t.Errorf("%+v may report", may)
		}
		if len(may) == 1 && may[0].name != PodOf(vm) {
			t.Errorf("%+v may report, and people are led to %s", may, PodOf(vm))
		}
		of := PodsOf(vm)
		if of[0] != PodOf(vm) || len(slices.Compact(slices.Sorted(slices.Values(of)))) != len(of) {
			t.Errorf("pods %v, of which the first is to be %s", of, PodOf(vm))
		}
		if got := PodWithUID(vm, "of none"); got != PodOf(vm) {
			t.Errorf("a pod that is in no status is looked for as %s", got)
		}
		for _, p := range listed {
			if got := PodWithUID(vm, p.uid); got != p.name {
				t.Errorf("the pod with UID %s is looked for as %s", p.uid, got)
			}
			if !slices.Contains(of, p.name) {
				t.Errorf("%v lack %s", of, p.name)
			}
		}
	})
}

func TestTheMachineOfAPod(t *testing.T) {
	for want, pod := range map[string]*corev1.Pod{
		"web": {ObjectMeta: metav1.ObjectMeta{Name: "web-7", Labels: map[string]string{names.LabelInstance: "web"}}},
		"db":  {ObjectMeta: metav1.ObjectMeta{Name: "db"}},
	} {
		if got := MachineOf(pod); got != want {
			t.Errorf("%s: %s, want %s", pod.Name, got, want)
		}
	}
}
