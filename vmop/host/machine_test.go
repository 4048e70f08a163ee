package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runner"
)

func TestJudge(t *testing.T) {
	qemu, vmopRunner := runner.Holder{PID: 7, Executable: "qemu-system-x86_64"}, runner.Holder{PID: 5, Executable: "vmop-cli"}
	ended := func(c runner.Cause) runner.State {
		return runner.State{Phase: runner.PhaseStopped, Outcome: &runner.Outcome{Cause: c}}
	}
	for _, c := range []struct {
		name    string
		state   runner.State
		holders []runner.Holder
		want    Status
	}{
		{"it runs", runner.State{Phase: runner.PhaseBooting, RunnerPID: 5}, []runner.Holder{qemu, vmopRunner}, StatusRunning},
		{"it is paused", runner.State{Phase: runner.PhaseBooting, RunnerPID: 5, Paused: true}, []runner.Holder{qemu, vmopRunner}, StatusPaused},
		{"it is shut down though paused", runner.State{Phase: runner.PhaseTerminating, RunnerPID: 5, Paused: true}, []runner.Holder{qemu, vmopRunner}, "Terminating"},
		{"it is shutting down", runner.State{Phase: runner.PhaseTerminating, RunnerPID: 5}, []runner.Holder{vmopRunner, qemu}, "Terminating"},
		{"a new runner has written no state yet", ended(runner.CauseGuestShutdown), []runner.Holder{vmopRunner}, "Initializing"},
		{"there is no state at all", runner.State{}, []runner.Holder{vmopRunner}, "Initializing"},
		{"its runner was killed", runner.State{Phase: runner.PhaseBooting, RunnerPID: 5}, []runner.Holder{qemu}, StatusOrphaned},
		{"both were killed", runner.State{Phase: runner.PhaseBooting, RunnerPID: 5}, nil, StatusDied},
		{"it was stopped, and is being cloned", ended(runner.CauseRequested), []runner.Holder{{PID: 5, Executable: "vmop-cli", Doing: "cloned"}}, StatusStopped},
		{"it was stopped", ended(runner.CauseRequested), nil, StatusStopped},
		{"it was stopped by force", ended(runner.CauseForced), nil, StatusStopped},
		{"it could not be started", ended(runner.CauseStartFailure), nil, StatusFailed},
		{"it crashed", ended(runner.CauseQEMUFailure), nil, StatusFailed},
		{"an old state without an outcome", runner.State{Phase: runner.PhaseStopped}, nil, StatusStopped},
	} {
		if got, _, _ := judge(c.state, c.holders); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A list says why a guest stands still, unless somebody asked for that.
func TestWhyPaused(t *testing.T) {
	for reason, want := range map[string]string{live.ReasonPaused: "", live.ReasonDiskFull: "no space"} {
		m := Machine{Status: StatusPaused, State: runner.State{
			Phase: runner.PhaseBooting, Message: "the guest executes", Paused: true,
			Conditions: []live.Condition{{Type: live.ResetDone}, {Type: live.GuestExecuting, Reason: reason, Message: "no space"}},
		}}
		if got := m.Message(); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}

// What the run before has said is nothing about one that is just being started.
func TestMessageOfTheRunBefore(t *testing.T) {
	before := runner.State{Phase: runner.PhaseStopped, RunnerPID: 7, Message: "qemu ended: signal: killed"}
	for pid, want := range map[int]string{0: before.Message, 7: before.Message, 8: ""} {
		m := Machine{State: before, Runner: pid, Status: Status(runner.PhaseInitializing)}
		if got := m.Message(); got != want {
			t.Errorf("runner %d: %q, want %q", pid, got, want)
		}
	}
	if m := (Machine{State: runner.State{Message: "cut off"}, Runner: 8}); m.Message() != "cut off" {
		t.Errorf("a state that cannot be read: %q", m.Message())
	}
}

// Sockets in a runtime directory have paths that Linux takes, and machines have
// directories of their own.
func TestRuntimeDir(t *testing.T) {
	long := strings.Repeat("n", 63)
	seen := map[string]bool{}
	for _, m := range [][2]string{{"default", "web"}, {"default", long}, {long, "web"}, {long, long}} {
		dir := runtimeDir("/run/user/1000/vmop", m[0], m[1])
		if len(dir) > maxSocketDir() || seen[dir] || !strings.HasPrefix(dir, "/run/user/1000/vmop/") {
			t.Errorf("%v: %s", m, dir)
		}
		seen[dir] = true
	}
	none := func(string) string { return "" }
	if got, want := runtimeBase(none, 1<<30), filepath.Join(os.TempDir(), "vmop-1073741824"); got != want {
		t.Errorf("without a login session: %s, want %s", got, want)
	}
}

// Only what is known is ever removed, and no disk without being asked.
func TestWhatDeleteRemoves(t *testing.T) {
	for _, c := range []struct {
		name      string
		mode      fs.FileMode
		withDisks bool
		want      bool
	}{
		{"state.json", 0, false, true},
		{"run.log.old", 0, false, true},
		{"a-disk.img", 0, false, false},
		{"a-disk.img", 0, true, true},
		{"a-disk.img", fs.ModeSymlink, true, false},
		{"a-disk.img", fs.ModeDir, true, false},
		{"a-disk.img", fs.ModeDevice, true, false},
		// Also where no image is beside them: the disks may be elsewhere.
		{"uuid.txt", 0, false, false},
		{"tpm2-00.permall", 0, false, false},
		{"fw-vars.fd", 0, false, false},
		{"machine.json", 0, false, false},
		{"fw-vars.secure.fd", 0, true, true},
		{"tpm2-00.permall", 0, true, true},
		{"notes.txt", 0, true, false},
		{"a.qcow2", 0, true, false},
	} {
		f := File{Name: c.name}
		f.Kind, f.Holds = classify(c.name, c.mode)
		if got := f.removedBy(DeleteOptions{Disks: c.withDisks}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
