package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/runner"
)

// testHost is a host with directories of its own.
func testHost(t *testing.T) *Host {
	t.Helper()
	run := t.TempDir()
	h, err := Open(Options{DataDir: t.TempDir(), Getenv: func(name string) string {
		if name == "XDG_RUNTIME_DIR" {
			return run
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// holder starts a process that holds a machine's lock as a runner does.
func holder(t *testing.T, d Directories) *exec.Cmd {
	t.Helper()
	if err := os.MkdirAll(d.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := runner.Lock(d.Data)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "600")
	cmd.ExtraFiles = []*os.File{lock}
	if err := errors.Join(cmd.Start(), lock.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// A wait ends when the state says so, when the process has ended, or with its
// context, whose cause it gives.
func TestWait(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := testHost(t)
	d, err := h.Directories("lab", "web")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Machine("lab", "web"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a machine that is not there: %v", err)
	}
	cmd := holder(t, d)
	m, err := h.Machine("lab", "web")
	if err != nil || m.Status != "Initializing" || m.Runner != cmd.Process.Pid {
		t.Fatalf("%+v, %v", m, err)
	}
	late := errors.New("too late")
	short, cancelShort := context.WithTimeoutCause(ctx, 50*time.Millisecond, late)
	defer cancelShort()
	if _, err := h.Wait(short, m, ForRunning); !errors.Is(err, late) {
		t.Errorf("what never comes: %v", err)
	}

	running := make(chan error, 1)
	go func() {
		_, err := h.Wait(ctx, m, ForRunning)
		running <- err
	}()
	file := runner.StateFile{Path: d.StateFile()}
	file.State(runner.State{Phase: runner.PhaseBooting, RunnerPID: cmd.Process.Pid})
	if err := <-running; err != nil {
		t.Error(err)
	}

	stopped := make(chan error, 1)
	go func() {
		now, err := h.Wait(ctx, m, ForStopped)
		if now.Running() {
			err = errors.Join(err, errors.New("it runs"))
		}
		stopped <- err
	}()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := h.Wait(ctx, m, ForRunning); err == nil {
		t.Error("a machine whose runner was killed is awaited")
	}
}

// Who waits for a machine to run is told when it is deleted; it has stopped then.
func TestWaitForADeletedMachine(t *testing.T) {
	for _, c := range []struct {
		name  string
		until Condition
		want  error
	}{{"running", ForRunning, ErrNotFound}, {"stopped", func(m *Machine) (bool, error) {
		if !exists(m.ManifestFile()) {
			return ForStopped(m)
		}
		return false, nil
	}, nil}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			b := newBench(t)
			seen := make(chan struct{}, 100)
			waited := make(chan error, 1)
			go func() {
				_, err := b.h.Wait(ctx, b.m, func(m *Machine) (bool, error) {
					seen <- struct{}{}
					return c.until(m)
				})
				waited <- err
			}()
			<-seen
			if _, err := b.m.remove(DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := <-waited; !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// A runner that does not stop in time goes on, unless it is to be forced.
func TestStopIsBounded(t *testing.T) {
	h := testHost(t)
	d, err := h.Directories("lab", "web")
	if err != nil {
		t.Fatal(err)
	}
	cmd := holder(t, d)
	m, err := h.Machine("lab", "web")
	if err != nil {
		t.Fatal(err)
	}
	// A stopped process does not even notice TERM.
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for stat := ""; !strings.Contains(stat, ") T "); time.Sleep(time.Millisecond) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		stat = string(data)
	}
	if err := m.Stop(t.Context(), StopOptions{Timeout: 50 * time.Millisecond}); !errors.Is(err, ErrStillRuns) {
		t.Errorf("%v", err)
	}
	if _, err := m.remove(DeleteOptions{}); err == nil {
		t.Error("a machine that runs was deleted")
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := m.Stop(t.Context(), StopOptions{}); err != nil {
		t.Error(err)
	}
}
