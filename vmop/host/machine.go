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
	// State is what its runner last wrote.
	State runner.State
	// Runner and QEMU are the processes that have it; 0 if there is none.
	Runner, QEMU int
	Status       Status
	// Busy is what another process does with a machine that does not run, such as
	// cloning it; nil if there is none.
	Busy *runner.BusyError
	// Unmerged says that a copy of its disks was interrupted: what the guest wrote since is
	// beside the images, until the next copy, resume or start merges it.
	Unmerged bool
}

// Status says what a machine is doing, from the user's point of view. Beside the
// constants here it is the name of a runner's phase.
type Status string

// The statuses that a machine on one host can have, beside the runner's phases.
const (
	// StatusRunning: the guest executes.
	StatusRunning Status = "Running"
	// StatusPaused: the processors stand still.
	StatusPaused  Status = "Paused"
	StatusStopped Status = "Stopped"
	// StatusFailed: it could not be started, or crashed.
	StatusFailed Status = "Failed"
	// StatusDied: runner and QEMU were killed.
	StatusDied Status = "Stopped (runner died)"
	// StatusOrphaned: the guest runs without its runner.
	StatusOrphaned Status = "Orphaned"
	// StatusDeleted: there is no such machine any more, but its disks or their identity
	// are left, see [ListOptions.Leftovers].
	StatusDeleted Status = "Deleted"
)

// FullName is the machine's NAMESPACE/NAME.
func (m *Machine) FullName() string { return FullName(m.Namespace, m.Name) }

// Running reports whether the guest may execute.
func (m *Machine) Running() bool { return m.Runner != 0 || m.QEMU != 0 }

// Ready says whether the guest executes, as the condition Ready of a machine in a
// cluster does: True, False, or Unknown while nobody is there who would say so. Whether
// the system in it is up only its agent knows, see [ForReady].
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

// runtimeDir is the runtime directory that the machine's runner uses.
func (m *Machine) runtimeDir() string {
	if m.State.RuntimeDir != "" {
		return m.State.RuntimeDir
	}
	return m.Runtime
}

// Message says in words what there is to say about the status; empty if nothing.
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

// unmergedText is what there is to say about [Machine.Unmerged].
const unmergedText = "a copy of its disks was interrupted: the next snapshot, clone, resume or start merges what the guest has written since"

func (m *Machine) message() string {
	switch {
	case m.Runner != 0 && m.State.RunnerPID != m.Runner && m.State.Phase != "":
		return "" // the state is that of the run before
	case m.State.Phase == "": // the state cannot be read, and the message says so
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

// whyOther says what a machine that runs is not as its manifest says, if that needs
// somebody; the first of several.
func whyOther(s *runner.State) string {
	for _, c := range s.Conditions {
		if c.Type == live.RestartRequired && c.Status == live.True || c.Reason != live.ReasonAdjusting && waits(c) {
			return c.Message
		}
	}
	return ""
}

// whyPaused is why a guest does not execute, if nobody asked for that.
func whyPaused(s *runner.State) string {
	for _, c := range s.Conditions {
		if c.Type == live.GuestExecuting && c.Reason != live.ReasonPaused {
			return c.Message
		}
	}
	return ""
}

// judge decides the status: the processes that hold the machine's lock say
// whether it runs, the state file only how it is called.
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

// busyOf is what one of the processes that have a machine does with it beside running it.
func busyOf(holders []runner.Holder) *runner.BusyError {
	for _, h := range holders {
		if h.Doing != "" {
			return &runner.BusyError{PID: h.PID, Doing: h.Doing}
		}
	}
	return nil
}

// busy is what another process does with the machine, nil if that is not known.
func (d Directories) busy() *runner.BusyError {
	holders, err := runner.Holders(d.Data)
	if err != nil {
		return nil
	}
	return busyOf(holders)
}

// errBusy is the error of a machine that somebody else has locked.
func (d Directories) errBusy() error {
	if busy := d.busy(); busy != nil {
		return fmt.Errorf("%w: %w", ErrBusy, busy)
	}
	return ErrBusy
}

// ErrNotFound says that this host has no machine of a name.
var ErrNotFound = errors.New("no such machine")

// ErrBusy says that somebody else starts, copies, changes or deletes the machine at this
// moment. The error has a [*runner.BusyError] where it is known what is done, and by whom.
var ErrBusy = errors.New("another command is at work on it")

// waits reports whether a condition says that the machine is not as it should be.
func waits(c live.Condition) bool {
	return c.Type != live.RestartRequired && c.Type != live.GuestExecuting && c.Status == live.False
}

var errNoMachine = errors.New("there is no machine: the pointer is nil")
