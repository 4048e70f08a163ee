package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runner"
)

// Machine is a machine of this host, as it was found.
type Machine struct {
	Directories
	Namespace, Name string
	// State is the last state that its runner wrote.
	State runner.State
	// Runner and QEMU are the processes that have it; 0 if there is none.
	Runner, QEMU int
	Status       Status
	// Busy is the work of another process on a machine that does not run, such as cloning it; nil
	// if there is none.
	Busy *runner.BusyError
	// Unmerged reports that a copy of its disks was interrupted: the guest's writes since are
	// beside the images, until the next copy, resume or start merges them.
	Unmerged bool
}

// Status is what a machine is doing, from the user's point of view: one of the constants or the
// name of a runner's phase.
type Status string

// The statuses of a machine on one host, beside the runner's phases.
const (
	// StatusRunning: the guest executes.
	StatusRunning Status = "Running"
	// StatusPaused: the processors are stopped.
	StatusPaused  Status = "Paused"
	StatusStopped Status = "Stopped"
	// StatusFailed: it could not be started, or crashed.
	StatusFailed Status = "Failed"
	// StatusDied: runner and QEMU were killed.
	StatusDied Status = "Stopped (runner died)"
	// StatusOrphaned: the guest runs without its runner.
	StatusOrphaned Status = "Orphaned"
	// StatusDeleted: the machine was deleted, but its disks or their identity are left, see
	// [ListOptions.Leftovers].
	StatusDeleted Status = "Deleted"
)

// FullName is the machine's NAMESPACE/NAME.
func (m *Machine) FullName() string { return FullName(m.Namespace, m.Name) }

// Running reports whether the guest may execute.
func (m *Machine) Running() bool { return m.Runner != 0 || m.QEMU != 0 }

// Ready reports whether the guest executes, like the condition Ready of a machine in a cluster:
// True, False, or Unknown without a runner. Whether the guest has booted is only known by its
// agent, see [ForReady].
func (m *Machine) Ready() live.Status {
	switch m.Status {
	case StatusRunning:
		return live.True
	case StatusOrphaned:
		return live.Unknown
	}
	return live.False
}

// Socket is the path of a socket in the machine's runtime directory.
func (m *Machine) Socket(purpose qemucmd.SocketPurpose) string {
	return filepath.Join(m.runtimeDir(), purpose.FileName())
}

func (m *Machine) runtimeDir() string {
	if m.State.RuntimeDir != "" {
		return m.State.RuntimeDir
	}
	return m.Runtime
}

// Message explains the status, for people; empty if there is nothing to explain.
func (m *Machine) Message() string {
	text := m.message()
	if m.Busy != nil {
		text = m.Busy.Error()
	}
	if m.Unmerged {
		text = strings.TrimPrefix(text+"; "+unmergedText, "; ")
	}
	return text
}

const unmergedText = "a copy of its disks was interrupted: the next snapshot, clone, resume or start merges what the guest has written since"

func (m *Machine) message() string {
	switch {
	case m.Runner != 0 && m.State.RunnerPID != m.Runner && m.State.Phase != "":
		return "" // the state is that of the previous run
	case m.State.Phase == "": // the state cannot be read; the message is the error
	case m.Status == StatusDied:
		return "the runner was killed"
	case m.Status == StatusOrphaned:
		return "the runner was killed, the guest runs on"
	case m.Status == StatusRunning:
		return whyOther(&m.State)
	case m.Status == StatusPaused:
		return whyPaused(&m.State)
	}
	return m.State.Message
}

func whyOther(s *runner.State) string {
	for _, c := range s.Conditions {
		if c.Type == live.RestartRequired && c.Status == live.True || c.Reason != live.ReasonAdjusting && waits(c) {
			return c.Message
		}
	}
	return ""
}

func whyPaused(s *runner.State) string {
	for _, c := range s.Conditions {
		if c.Type == live.GuestExecuting && c.Reason != live.ReasonPaused {
			return c.Message
		}
	}
	return ""
}

// judge decides the status: whether the machine runs depends on the processes that hold its lock,
// the state file only refines it.
func judge(s runner.State, holders []runner.Holder) (st Status, runnerPID, qemuPID int) {
	for _, h := range holders {
		switch {
		case h.IsQEMU():
			qemuPID = h.PID
		case h.Doing == "":
			runnerPID = h.PID
		}
	}
	switch {
	case runnerPID != 0 && s.RunnerPID != runnerPID:
		st = Status(runner.PhaseInitializing) // it has not written its state yet
	case runnerPID != 0 && s.Phase == runner.PhaseBooting && s.Paused:
		st = StatusPaused
	case runnerPID != 0 && s.Phase == runner.PhaseBooting:
		st = StatusRunning
	case runnerPID != 0:
		st = Status(s.Phase)
	case qemuPID != 0:
		st = StatusOrphaned
	case s.Phase != runner.PhaseStopped:
		st = StatusDied
	case s.Outcome != nil && (s.Outcome.ExitCode() == runner.ExitStart || s.Outcome.ExitCode() == runner.ExitFailure):
		st = StatusFailed
	default:
		st = StatusStopped
	}
	return st, runnerPID, qemuPID
}

func busyOf(holders []runner.Holder) *runner.BusyError {
	for _, h := range holders {
		if h.Doing != "" {
			return &runner.BusyError{PID: h.PID, Doing: h.Doing}
		}
	}
	return nil
}

func (d Directories) busy() *runner.BusyError {
	holders, err := runner.Holders(d.Data)
	if err != nil {
		return nil
	}
	return busyOf(holders)
}

func (d Directories) errBusy() error {
	if busy := d.busy(); busy != nil {
		return fmt.Errorf("%w: %w", ErrBusy, busy)
	}
	return ErrBusy
}

// ErrNotFound is the error when this host has no machine of a name.
var ErrNotFound = errors.New("no such machine")

// ErrBusy is the error when another process starts, copies, changes or deletes the machine at this
// moment. It wraps a [*runner.BusyError] if the process and its work are known.
var ErrBusy = errors.New("another command is at work on it")

func waits(c live.Condition) bool {
	return c.Type != live.RestartRequired && c.Type != live.GuestExecuting && c.Status == live.False
}

var errNoMachine = errors.New("there is no machine: the pointer is nil")
