package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/vmop/sdk/vmop/runner"
)

// Condition is what a wait is for: done, or an error if it cannot become true any more.
type Condition func(*Machine) (done bool, err error)

// ForRunning waits until the guest executes. It is an error if the machine stops.
func ForRunning(m *Machine) (bool, error) {
	if m == nil {
		return false, errNoMachine
	}
	switch m.Status {
	case StatusRunning, StatusPaused:
		return true, nil
	case StatusFailed, StatusDied:
		return false, fmt.Errorf("it does not run (%s): %s", m.Status, m.Message())
	}
	return false, nil
}

// ForStopped waits until no process has the machine.
func ForStopped(m *Machine) (bool, error) {
	if m == nil {
		return false, errNoMachine
	}
	return !m.Running(), nil
}

// ForReady waits until the guest agent has answered, which is when the guest has booted. A machine
// without the agent never becomes ready.
func ForReady(m *Machine) (bool, error) {
	if _, err := ForRunning(m); err != nil {
		return false, err
	}
	return m.Status == StatusRunning && m.State.Guest.Booted, nil
}

// Wait waits until a condition holds for a machine, and returns the machine at that time, or as it
// was last seen. It does no work while nothing changes.
func (h *Host) Wait(ctx context.Context, m Machine, condition Condition) (Machine, error) {
	return m, h.Watch(ctx, m, func(now *Machine) (bool, error) {
		m = *now
		return condition(now)
	})
}

// Watch calls a function with the machine, and again whenever it may have changed, until it returns
// true or an error, or ctx ends. The machine need not exist, but its directory must. After a
// machine was deleted, the function is called once more, and the error is [ErrNotFound].
func (h *Host) Watch(ctx context.Context, m Machine, seen func(*Machine) (done bool, err error)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", m.FullName(), err)
	}
	if err = w.Add(m.Data); err == nil {
		_ = w.Add(m.runtimeDir()) // of a running machine
		err = h.watch(ctx, w, m, seen)
	} else {
		err = fmt.Errorf("watch %s: %w", m.FullName(), err)
	}
	return errors.Join(err, w.Close())
}

func (h *Host) watch(ctx context.Context, w *fsnotify.Watcher, m Machine, seen func(*Machine) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	var watched int // the process whose end is awaited
	var ended chan struct{}
	existed := false
	for {
		now, lost := h.Machine(m.Namespace, m.Name)
		if lost != nil && !errors.Is(lost, ErrNotFound) {
			return lost
		}
		if done, err := seen(&now); done || err != nil {
			return err
		}
		if lost != nil && existed {
			return fmt.Errorf("it was deleted meanwhile: %w", lost)
		}
		existed = existed || lost == nil
		// The end of a killed process changes no file.
		pid := now.Runner // it outlives its QEMU
		if pid == 0 {
			pid = now.QEMU
		}
		if pid != 0 && pid != watched {
			proc, err := runner.OpenHolder(now.Data, pid)
			if err != nil {
				return err
			}
			if proc == nil {
				continue // it has ended since
			}
			done := make(chan struct{})
			watched, ended = pid, done
			waiting.Go(func() {
				defer close(done)
				_, _ = proc.Wait(ctx, 0)
				_ = proc.Close()
			})
		}
		process, err := awaitChange(ctx, w, ended)
		if err != nil {
			return err
		}
		if process {
			watched, ended = 0, nil
		}
	}
}

func awaitChange(ctx context.Context, w *fsnotify.Watcher, ended <-chan struct{}) (process bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-ended:
			return true, nil
		case e, ok := <-w.Events:
			if !ok {
				return false, errors.New("the watch has ended")
			}
			if tells(e.Name) {
				return false, nil
			}
		case err := <-w.Errors:
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				return false, nil
			}
			return false, fmt.Errorf("watch: %w", err)
		}
	}
}

// tells reports whether a changed file may be a change of the machine. The guest writes to its
// disks all the time.
func tells(path string) bool {
	switch filepath.Base(path) {
	case stateFile, manifestFile, runner.LockFile:
		return true
	}
	return false
}
