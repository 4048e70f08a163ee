package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/runner"
)

// A command that pauses a machine returns when its runner has told so: whoever looks next
// finds it paused.
func TestPauseIsToldBeforeItReturns(t *testing.T) {
	env := map[string]string{"VMOP_DATA_DIR": t.TempDir(), "XDG_RUNTIME_DIR": t.TempDir()}
	p := &program{getenv: func(name string) string { return env[name] }}
	c := cli.NewContext(cli.NewApp(), flag.NewFlagSet("pause", flag.ContinueOnError), nil)
	h, err := p.host(c)
	if err != nil {
		t.Fatal(err)
	}
	d, err := h.Directories("lab", "web")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(d.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := runner.Lock(d.Data)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "600") // in place of the runner
	cmd.ExtraFiles = []*os.File{lock}
	if err := errors.Join(cmd.Start(), lock.Close()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	tells := func(paused bool) {
		file := runner.StateFile{Path: d.StateFile()}
		file.State(runner.State{Phase: runner.PhaseBooting, RunnerPID: cmd.Process.Pid, Paused: paused})
	}
	tells(false)
	m, err := h.Machine("lab", "web")
	if err != nil || m.Status != host.StatusRunning {
		t.Fatalf("%s, %v", m.Status, err)
	}
	late := time.AfterFunc(200*time.Millisecond, func() { tells(true) })
	defer late.Stop()
	if err := p.awaitStatus(t.Context(), c, m, host.StatusPaused); err != nil {
		t.Fatal(err)
	}
	if m, err := h.Machine("lab", "web"); err != nil || m.Status != host.StatusPaused {
		t.Errorf("it is %s, %v", m.Status, err)
	}
}
