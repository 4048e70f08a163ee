package machinetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// accelerated decides about a machine that may run, and finds the condition.
func accelerated(t interface{ Fatalf(string, ...any) }, s machine.Snapshot) map[string]any {
	for _, st := range machine.Decide(s).Statuses {
		if st.Manager != names.OperatorStatusManager {
			continue
		}
		for _, c := range st.Status["conditions"].([]any) {
			if m := c.(map[string]any); m["type"] == spec.ConditionAccelerated {
				return m
			}
		}
	}
	t.Fatalf("the condition is missing")
	return nil
}

// runningMachine is a machine whose runner has reported.
func runningMachine() machine.Snapshot {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	for range 5 {
		w.work()
	}
	s, _ := w.snapshot()
	s.VM.Status.Conditions = spec.WithCondition(s.VM.Status.Conditions, spec.Condition{Type: spec.ConditionRunning, Status: metav1.ConditionTrue, Reason: "x", Message: "x"})
	return s
}

// The condition says True of a guest with the node's processors, False of one that
// is emulated, and nothing of one that does not execute; and what there is to do.
func TestAccelerated(t *testing.T) {
	running := runningMachine()
	reasons := []string{"", spec.ReasonEmulationRequested, spec.ReasonNoKVMDevice, spec.ReasonKVMNotPermitted, spec.ReasonNoVirtualization, spec.ReasonKVMFails, "Other"}
	rapid.Check(t, func(t *rapid.T) {
		s := running
		s.VM = running.VM.DeepCopy()
		s.VM.Generation++ // so that there is something to tell
		s.VM.Spec.VM.Accelerator = rapid.SampledFrom([]spec.Accelerator{spec.AcceleratorAuto, spec.AcceleratorKVM, spec.AcceleratorTCG}).Draw(t, "desired")
		s.VM.Status.Accelerator = rapid.SampledFrom([]string{"", "kvm", "tcg"}).Draw(t, "accelerator")
		if r := rapid.SampledFrom(reasons).Draw(t, "reason"); r != "" {
			s.VM.Status.Emulation = &spec.Emulation{Reason: r, Message: rapid.SampledFrom([]string{"", "found."}).Draw(t, "message")}
		}
		s.Settings.KVMResource = rapid.SampledFrom([]corev1.ResourceName{"", "devices.kubevirt.io/kvm"}).Draw(t, "resource")
		s.Settings.Privileged = rapid.Bool().Draw(t, "privileged")
		there := rapid.Bool().Draw(t, "there is a pod")
		if !there {
			setPod(&s, nil)
			s.VM.Spec.VM.State = spec.StateStopped
		}
		want := "Unknown"
		switch {
		case !there || s.VM.Status.Accelerator == "":
		case s.VM.Status.Accelerator == "kvm":
			want = "True"
		default:
			want = "False"
		}
		got := accelerated(t, s)
		text := got["message"].(string)
		if got["status"] != want || got["reason"] == "" || text == "" || strings.Contains(text, "..") || strings.Contains(text, ".;") {
			t.Errorf("%v, want %s", got, want)
		}
		if e := s.VM.Status.Emulation; want == "False" && e != nil && got["reason"] != e.Reason {
			t.Errorf("%v for %+v", got, e)
		}
		way := s.Settings.KVMResource != "" || s.Settings.Privileged
		if want == "False" && got["reason"] == spec.ReasonNoKVMDevice && strings.Contains(text, "VMOP_KVM_RESOURCE") == way {
			t.Errorf("what would help: %s", text)
		}
		if settings := strings.Contains(text, "VMOP_PRIVILEGED=true"); settings && (way || s.VM.Spec.VM.Accelerator == spec.AcceleratorTCG && want != "False") {
			t.Errorf("what would not help: %s", text)
		}
	})
}

// The next pod is in the groups of the node's devices that the last runner has
// found, but for a privileged one, which has all devices of the node.
func TestFoundDeviceGroups(t *testing.T) {
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "apps", UID: "uid"}}
	vm.Spec.VM.State, vm.Spec.VM.MaximumCPUs = spec.StateRunning, new(int32(1))
	vm.Status.DeviceGroups = []int64{104, 0, -1, 1 << 40}
	spec.Default(vm)
	for want, settings := range map[string]objects.Settings{
		"[]":       {},
		"[104]":    {KVMResource: "devices.kubevirt.io/kvm"},
		"[36 104]": {KVMResource: "devices.kubevirt.io/kvm", DeviceGroups: []int64{36, 104}},
		"[36]":     {Privileged: true, DeviceGroups: []int64{36}},
	} {
		w := newWorld(func(string, int) int { return 0 }, machine.Decide)
		w.settings = settings
		w.put(theVM, vm.DeepCopyObject().(*spec.VirtualMachine))
		for range 5 {
			w.work()
		}
		pod := get[*corev1.Pod](w, thePod)
		if pod == nil {
			t.Fatalf("%+v: no pod", settings)
		}
		if got := fmt.Sprint(pod.Spec.SecurityContext.SupplementalGroups); got != want {
			t.Errorf("%+v: groups %s, want %s", settings, got, want)
		}
	}
}
