package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/inspect"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// Whatever a machine is like, its page has one next step.
func TestNextStep(t *testing.T) {
	vm := func(change func(*spec.VirtualMachine)) *spec.VirtualMachine {
		vm := spec.NewVirtualMachine("shop", "web")
		vm.Spec.VM.State, vm.Status.Phase = spec.StateRunning, spec.PhaseRunning
		change(vm)
		return vm
	}
	for _, x := range []struct {
		vm   *spec.VirtualMachine
		want string
	}{
		{vm(func(vm *spec.VirtualMachine) { vm.Status.Phase = "" }), "see that the operator runs"},
		{vm(func(*spec.VirtualMachine) {}), "nothing needs to be done"},
		{vm(func(vm *spec.VirtualMachine) {
			vm.Status.Phase, vm.DeletionTimestamp = spec.PhaseTerminating, &metav1.Time{Time: time.Now()}
		}), "vmop-cli stop --force -n shop web --cluster does not wait"},
		{vm(func(vm *spec.VirtualMachine) {
			vm.Spec.VM.State, vm.Status.Phase = spec.StateStopped, spec.PhaseStopped
		}), "vmop-cli start -n shop web --cluster"},
		{vm(func(vm *spec.VirtualMachine) {
			vm.Spec.RunPolicy, vm.Status.Phase = spec.RunPolicyAlwaysOff, spec.PhaseStopped
		}), "AlwaysOff keeps it stopped"},
		{vm(func(vm *spec.VirtualMachine) { vm.Status.Phase = spec.PhasePending }), "vmop-cli events -n shop web --cluster says what happened"},
		{vm(func(vm *spec.VirtualMachine) {
			vm.Status.Conditions = []spec.Condition{{Type: spec.ConditionAwaitingRestart, Status: metav1.ConditionTrue}}
		}), "vmop-cli restart -n shop web --cluster applies it"},
	} {
		page := clusterPage(x.vm, time.Now(), clusterSteps)
		if last := page[len(page)-1]; last[0] != "Next" || !strings.Contains(last[1], x.want) {
			t.Errorf("%v, want %s", page, x.want)
		}
	}
	for status, want := range map[host.Status]string{
		host.StatusStopped: "do start", host.StatusFailed: "do logs", host.StatusDied: "do logs", host.StatusOrphaned: "do stop",
		host.StatusPaused: "do resume", host.StatusRunning: "do console", "Starting": "do wait",
	} {
		page := hostPage(&host.Machine{Namespace: "lab", Name: "a", Status: status}, nil, func(verb string) string { return "do " + verb })
		if last := page[len(page)-1]; last[0] != "Next" || !strings.Contains(last[1], want) {
			t.Errorf("%s: %v, want %s", status, page, want)
		}
	}
}

// Whoever looks at a machine sees that its guest has panicked, also after its end.
func TestGuestPanicsAreShown(t *testing.T) {
	for panics, want := range map[int]bool{0: false, 2: true} {
		vm := spec.NewVirtualMachine("shop", "web")
		vm.Status.GuestPanics = int64(panics)
		here := host.Machine{Namespace: "lab", Name: "a", Status: host.StatusStopped, State: runner.State{GuestPanics: panics}}
		var inspected, inspectedHere strings.Builder
		report := reportMachine(vm, nil)
		if err := (&program{stdout: &inspected}).writeClusterReport(&report); err != nil {
			t.Fatal(err)
		}
		if err := (&inspect.Report{Name: "a", GuestPanics: panics}).WriteText(&inspectedHere); err != nil {
			t.Fatal(err)
		}
		pages := map[string]string{"inspect": inspectedHere.String(), "inspect in a cluster": inspected.String()}
		for what, page := range map[string]page{
			"describe": hostPage(&here, nil, func(verb string) string { return verb }), "describe in a cluster": clusterPage(vm, time.Now(), clusterSteps),
		} {
			for _, line := range page {
				pages[what] += strings.Join(line, " ") + "\n"
			}
		}
		for what, text := range pages {
			if got := regexp.MustCompile(`Guest panics:? +2\n`).MatchString(text); got != want {
				t.Errorf("%s of a guest with %d panics:\n%s", what, panics, text)
			}
		}
	}
}

// A page says how long a start took, as far as that is known.
func TestLastStart(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	began := metav1.NewTime(now.Add(-time.Hour))
	vm := spec.NewVirtualMachine("shop", "web")
	vm.Status.Phase = spec.PhaseRunning
	vm.Status.Stats = &spec.Stats{LastStartTime: &began, LaunchTimeDuration: &spec.LaunchTimeDuration{
		WaitingForDependenciesSeconds: new(int64(130)), VirtualMachineStartingSeconds: new(int64(4)),
	}}
	vm.Status.Conditions = []spec.Condition{{Type: spec.ConditionBooted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(began.Add(20 * time.Second))}}
	want := "60m ago: 2m10s until a node took it, 4s until the guest executed, 20s until the guest agent answered"
	last := func() string {
		for _, line := range clusterPage(vm, now, clusterSteps) {
			if line[0] == "Last start" {
				return line[1]
			}
		}
		return ""
	}
	if got := last(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if vm.Status.Stats.LaunchTimeDuration = nil; last() != "60m ago" {
		t.Errorf("%q", last())
	}
}

// A Service leads to the pod, and what leads on to the guest is told if it is missing.
func TestExposure(t *testing.T) {
	user := func(f ...spec.HostForward) spec.Network {
		return spec.Network{User: &spec.UserNetwork{HostForwards: f}}
	}
	for _, x := range []struct {
		networks []spec.Network
		want     string
	}{
		{nil, "has no network"},
		{[]spec.Network{user()}, "hostPort: 8080, guestPort: PORT, protocol: tcp} in spec.vm.networks[0]"},
		{[]spec.Network{user(spec.HostForward{HostPort: 8080, Protocol: spec.ForwardUDP})}, "leads port 8080 (TCP)"},
		{[]spec.Network{user(spec.HostForward{HostPort: 8080, GuestPort: 80})}, ""},
		{[]spec.Network{user(), {Tap: &spec.TapNetwork{}}}, ""},
	} {
		vm := spec.NewVirtualMachine("shop", "web")
		vm.Spec.VM.Networks = x.networks
		e := cluster.Exposure{Port: 80, Target: 8080, Protocol: corev1.ProtocolTCP, Type: corev1.ServiceTypeClusterIP}
		if got := e.Missing(vm); x.want == "" && got != "" || !strings.Contains(got, x.want) {
			t.Errorf("%+v: %q, want %q", x.networks, got, x.want)
		}
		if s := e.Service(vm); s.Name != "web-80" || s.Spec.Ports[0].TargetPort.IntValue() != 8080 || len(s.Labels) != 0 || len(s.OwnerReferences) != 0 {
			t.Errorf("%+v", s)
		}
	}
}

var clusterSteps = nextSteps{
	hint:    func(words ...string) string { return "vmop-cli " + strings.Join(words, " ") + " --cluster" },
	kubectl: func(words ...string) string { return "kubectl " + strings.Join(words, " ") },
}
