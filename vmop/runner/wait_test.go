package runner

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// waitable is an engine whose start fails: its host has no QEMU.
func waitable(t *testing.T, data string) *Engine {
	t.Helper()
	c := runnerconfig.Config{}
	c.Runner.VM.Name = "web"
	c.Runner.DataDir, c.Runner.RuntimeDir = data, t.TempDir()
	h := qemucmd.GenericHost()
	h.QEMU = filepath.Join(data, "no-qemu")
	e, err := New(Options{Config: c, Host: h})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The directories of a configuration are the engine's, unless it is given others.
func TestDirectoriesAreGivenOnce(t *testing.T) {
	e := waitable(t, t.TempDir())
	s := e.State()
	if c := e.o.Config.Runner; s.DataDir != c.DataDir || s.RuntimeDir != c.RuntimeDir || s.DataDir == "" {
		t.Errorf("directories %q and %q, want those of the configuration", s.DataDir, s.RuntimeDir)
	}
	other := Directories{Data: t.TempDir(), Runtime: t.TempDir()}
	own, err := New(Options{Config: e.o.Config, Directories: other})
	if err != nil {
		t.Fatal(err)
	}
	if s := own.State(); s.DataDir != other.Data || s.RuntimeDir != other.Runtime {
		t.Errorf("directories %q and %q, want %v", s.DataDir, s.RuntimeDir, other)
	}
	c := e.o.Config
	c.Runner.RuntimeDir = ""
	if _, err := New(Options{Config: c}); err == nil || !strings.Contains(err.Error(), "runtime directory") {
		t.Errorf("without a runtime directory: %v", err)
	}
}

// Who waits is told of a phase that is reached or passed, and of an end before.
func TestWait(t *testing.T) {
	t.Run("reached and passed", func(t *testing.T) {
		e := waitable(t, t.TempDir())
		waits := make(chan error, 1)
		go func() { // ends with the phase
			_, err := e.Wait(t.Context(), PhaseBooting)
			waits <- err
		}()
		e.enter(PhaseInitializing, "")
		e.enter(PhaseTerminating, "the guest shuts down") // it was fast
		if err := <-waits; err != nil {
			t.Error(err)
		}
		if s, err := e.Wait(t.Context(), PhaseStarting); err != nil || s.Phase != PhaseTerminating {
			t.Errorf("%s, %v", s.Phase, err)
		}
	})
	t.Run("ended before", func(t *testing.T) {
		e := waitable(t, t.TempDir())
		waits := make(chan error, 1)
		go func() { // ends with Run
			_, err := e.Wait(t.Context(), PhaseBooting)
			waits <- err
		}()
		_, failed := e.Run(t.Context())
		if failed == nil {
			t.Fatal("it was started without QEMU")
		}
		if err := <-waits; !errors.Is(err, failed) {
			t.Errorf("%v, want %v", err, failed)
		}
		if s, err := e.Wait(t.Context(), PhaseStopped); err != nil || s.Phase != PhaseStopped {
			t.Errorf("%s, %v", s.Phase, err)
		}
		if _, err := e.Wait(t.Context(), PhaseInitializing); err != nil {
			t.Errorf("a phase that was passed: %v", err)
		}
	})
	t.Run("stopped before", func(t *testing.T) {
		e := waitable(t, t.TempDir())
		e.Stop()
		if _, err := e.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Wait(t.Context(), PhaseBooting); err == nil || !strings.Contains(err.Error(), "web has ended") {
			t.Error(err)
		}
	})
	t.Run("another engine's", func(t *testing.T) {
		data := t.TempDir()
		lock, err := Lock(data)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		e := waitable(t, data)
		_, failed := e.Run(t.Context())
		if !errors.Is(failed, ErrRunning) {
			t.Fatal(failed)
		}
		if _, err := e.Wait(t.Context(), PhaseStopped); !errors.Is(err, ErrRunning) {
			t.Errorf("the other engine's machine counts as stopped: %v", err)
		}
	})
	t.Run("no longer", func(t *testing.T) {
		e := waitable(t, t.TempDir())
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("somebody else is served")
		cancel(why)
		if _, err := e.Wait(ctx, PhaseBooting); !errors.Is(err, why) {
			t.Error(err)
		}
		if _, err := e.Wait(t.Context(), "Sleeping"); err == nil || !strings.Contains(err.Error(), `"Sleeping"`) {
			t.Error(err)
		}
	})
}
