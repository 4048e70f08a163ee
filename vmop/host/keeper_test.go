package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runner"
)

// While the data directory takes nothing, what the runner says is seen all the same.
func TestStateSurvivesAFullDisk(t *testing.T) {
	h := testHost(t)
	d, err := h.Directories("lab", "web")
	if err != nil {
		t.Fatal(err)
	}
	cmd := holder(t, d)
	if err := os.MkdirAll(d.Runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	(&runner.StateFile{Path: d.StateFile()}).State(runner.State{Phase: runner.PhaseBooting, RunnerPID: pid})
	k := &keeper{file: &runner.StateFile{Path: filepath.Join(d.Data, "no", "room")}, job: &Job{Directories: d}}
	k.State(runner.State{Phase: runner.PhaseStarting, RunnerPID: pid})
	k.State(runner.State{
		Phase: runner.PhaseBooting, RunnerPID: pid, Paused: true,
		Conditions: []live.Condition{{Type: live.GuestExecuting, Status: live.False, Reason: live.ReasonDiskFull, Message: "no space for disk0"}},
	})
	m, err := h.Machine("lab", "web")
	if err != nil || m.Status != StatusPaused || m.Message() != "no space for disk0" {
		t.Errorf("%s, %q, %v", m.Status, m.Message(), err)
	}
	// Of a runner that is gone it counts for nothing.
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if m, err := h.Machine("lab", "web"); err != nil || m.Status != StatusDied {
		t.Errorf("%s, %v", m.Status, err)
	}
}

// The last state goes where the one before was, if there is no room for another file.
func TestOverwriteAState(t *testing.T) {
	path := filepath.Join(t.TempDir(), stateFile)
	long := runner.State{Name: "web", Phase: runner.PhaseBooting, Message: "the guest executes", DataDir: "/a/long/path"}
	(&runner.StateFile{Path: path}).State(long)
	if err := overwrite(path, runner.State{Name: "web", Phase: runner.PhaseStopped}); err != nil {
		t.Fatal(err)
	}
	if got, err := runner.ReadState(path); err != nil || got.Phase != runner.PhaseStopped || got.Message != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := overwrite(path, long); err == nil {
		t.Error("a state that needs more room was written")
	}
	if got, err := runner.ReadState(path); err != nil || got.Phase != runner.PhaseStopped {
		t.Errorf("%+v, %v", got, err)
	}
}

// What waits for a restart is named by the manifest's fields, whatever part they are of.
func TestWhatWaitsIsInTheManifestsWords(t *testing.T) {
	s := runner.State{Conditions: []live.Condition{
		{Type: live.RestartRequired, Message: "these changes take effect with the next start: cloudInit.userData, vm.drives[0].size, vm.maximumRam"},
		{Type: live.Running, Message: "vm.maximumRam"},
	}}
	out := inManifest(s)
	if got, want := out.Conditions[0].Message, "these changes take effect with the next start: spec.cloudInit.userData, spec.vm.disks[0].size, spec.vm.maximumRam"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if out.Conditions[1].Message != "vm.maximumRam" || s.Conditions[0].Message == out.Conditions[0].Message {
		t.Errorf("%+v of %+v", out, s)
	}
}
