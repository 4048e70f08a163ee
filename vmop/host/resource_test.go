package host

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// A machine of a host has the phases of a cluster, and is Ready there as here.
func TestResource(t *testing.T) {
	b := newBench(t)
	since := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	runs := runner.State{
		Phase: runner.PhaseBooting, Since: since, Started: &since, CPUs: 2, RAM: 64 << 20, MachineType: "pc-q35-7.2", QEMUVersion: "7.2.22",
		StatusConditions: []live.StatusCondition{{Type: live.Running, Status: live.True, Reason: live.ReasonVMStarted, LastTransitionTime: since}},
		Conditions:       []live.Condition{{Type: live.RestartRequired, Status: live.True, Reason: "Changed", Message: "memory"}, {Type: live.CPUsAdjusted, Status: live.True, Reason: live.ReasonAsConfigured}},
		Guest:            runner.Guest{HostName: "web", OSInfo: json.RawMessage(`{"name":"tiny"}`), Interfaces: []runner.GuestInterface{{Name: "lo"}, {Name: "eth0", Addresses: []string{"10.0.2.15/24"}}}},
	}
	ended := runner.State{Phase: runner.PhaseStopped, Since: since, Outcome: &runner.Outcome{Cause: runner.CauseQEMUFailure, Message: "it broke", QEMUStatus: "exit status 1"}}
	for _, c := range []struct {
		status                                     Status
		state                                      runner.State
		pid                                        int
		phase, ready, reason, cause, began, reboot string
	}{
		{StatusRunning, runs, 7, spec.PhaseRunning, "True", "Running", "", spec.PhaseRunning, "True"},
		{StatusPaused, runs, 7, spec.PhasePaused, "False", "Paused", "", "", "True"},
		{StatusOrphaned, runs, 7, spec.PhaseUnknown, "Unknown", "Orphaned", "", "", "True"},
		{StatusDied, runs, 0, spec.PhaseStopped, "False", "RunnerDied", CauseRunnerDied, "", ""},
		{StatusFailed, ended, 0, spec.PhaseStopped, "False", "Failed", "qemu-failure", spec.PhaseStopped, ""},
		{StatusStopped, runner.State{Phase: runner.PhaseStopped}, 0, spec.PhaseStopped, "False", "Stopped", "", "", ""},
		{"Initializing", runner.State{}, 7, spec.PhaseStarting, "False", "Initializing", "", "", ""},
		{"Starting", runner.State{Phase: runner.PhaseStarting, Since: since}, 7, spec.PhaseStarting, "False", "Starting", "", spec.PhaseStarting, ""},
		{"Terminating", runner.State{Phase: runner.PhaseTerminating, Since: since}, 7, spec.PhaseStopping, "False", "Terminating", "", spec.PhaseStopping, ""},
		{"", runner.State{Message: "state.json: broken"}, 0, spec.PhaseUnknown, "False", "Unknown", "", "", ""},
	} {
		m := b.m
		m.Status, m.State, m.QEMU = c.status, c.state, c.pid
		vm, err := m.Resource()
		if err != nil {
			t.Errorf("%s: %v", c.status, err)
			continue
		}
		s := &vm.Status
		ready := spec.FindCondition(s.Conditions, conditions.Ready)
		if s.Phase != c.phase || ready == nil || string(ready.Status) != c.ready || ready.Reason != c.reason || s.Ready != (c.ready == "True") {
			t.Errorf("%s: phase %s, %+v", c.status, s.Phase, ready)
		}
		cause, began, reboot := "", "", ""
		if s.RunnerEnd != nil {
			cause = s.RunnerEnd.Cause
		}
		if s.Stats != nil && len(s.Stats.PhasesTransitions) > 0 {
			began = s.Stats.PhasesTransitions[0].Phase
		}
		if w := spec.FindCondition(s.Conditions, conditions.AwaitingRestart); w != nil {
			reboot = string(w.Status)
		}
		if cause != c.cause || began != c.began || reboot != c.reboot {
			t.Errorf("%s: it ended by %q, phase %q began, a restart is awaited: %q", c.status, cause, began, reboot)
		}
		if vm.Kind != spec.KindVirtualMachine || vm.Namespace != "lab" || vm.Name != "web" || vm.CreationTimestamp.IsZero() || vm.Spec.VM.MaximumRAM == nil {
			t.Errorf("%s: %+v, %+v", c.status, vm.TypeMeta, vm.ObjectMeta)
		}
		if data, err := json.Marshal(vm); err != nil || strings.Contains(string(data), "lastTransitionTime\":null") {
			t.Errorf("%s: %v %s", c.status, err, data)
		}
		if c.status == StatusRunning && (s.CPUs != 2 || s.RAM.String() != "64Mi" || s.HostName != "web" || len(s.Interfaces) != 1 || s.Versions.QEMU != "7.2.22") {
			t.Errorf("%+v", s)
		}
	}
	if _, err := (*Machine)(nil).Resource(); err == nil {
		t.Error("there is a resource of no machine")
	}
}

// A machine whose manifest cannot be used is told nevertheless, and that it cannot.
func TestResourceOfABrokenManifest(t *testing.T) {
	b := newBench(t)
	b.ok(os.WriteFile(b.m.ManifestFile(), []byte("kind: [\n"), 0o600))
	if vm, err := b.m.Resource(); err == nil || vm == nil || vm.Name != "web" || vm.Status.Phase != spec.PhaseStopped {
		t.Errorf("%+v, %v", vm, err)
	}
	b.ok(os.Remove(b.m.ManifestFile()))
	if vm, err := b.m.Resource(); err != nil || vm.Name != "web" {
		t.Errorf("%+v, %v", vm, err)
	}
}
