package runner

import (
	"encoding/json"
	"errors"

	"github.com/vmop/sdk/vmop/qmp"
)

// Cause says why a machine ended.
type Cause string

// The causes that an [Outcome] can have.
const (
	// CauseGuestShutdown: the guest powered itself off.
	CauseGuestShutdown Cause = "guest-shutdown"
	// CauseRequested: the guest shut down because it was asked to.
	CauseRequested Cause = "host-request"
	// CauseForced: it was asked to shut down, did not do so in time, and was
	// ended. Its disks are in the state of a power cut.
	CauseForced Cause = "host-forced"
	// CauseHostQuit: somebody else told QEMU to quit or killed it with a signal
	// that it handles.
	CauseHostQuit Cause = "host-quit"
	// CauseGuestPanic: the guest crashed and QEMU ended for it.
	CauseGuestPanic Cause = "guest-panic"
	// CauseQEMUFailure: QEMU ended by itself, with an error or by a signal.
	CauseQEMUFailure Cause = "qemu-failure"
	// CauseHelperFailure: a process that the machine needs (swtpm) ended, and
	// the machine was shut down because of it.
	CauseHelperFailure Cause = "helper-failure"
	// CauseStartFailure: the machine never ran.
	CauseStartFailure Cause = "start-failure"
)

// Outcome is how a machine ended.
type Outcome struct {
	Cause Cause `json:"cause"`
	// Message is one sentence for people.
	Message string `json:"message"`
	// Orderly says that the guest shut its file systems down.
	Orderly bool `json:"orderly"`
	// QEMUStatus is QEMU's exit status as the operating system tells it, such
	// as "exit status 0"; "" if QEMU was not started.
	QEMUStatus string `json:"qemuStatus,omitempty"`
}

// The exit codes of a program that runs one engine.
const (
	// ExitOK: the guest shut down, by itself or on request.
	ExitOK = 0
	// ExitStart: the machine could not be started.
	ExitStart = 1
	// ExitUsage: the program was called wrongly.
	ExitUsage = 2
	// ExitForced: the machine was stopped without the guest's consent.
	ExitForced = 3
	// ExitFailure: the machine ended by a failure of QEMU, of a helper or of the guest.
	ExitFailure = 4
)

// ExitCode is the exit code that belongs to the outcome.
func (o Outcome) ExitCode() int {
	switch o.Cause {
	case CauseGuestShutdown, CauseRequested:
		return ExitOK
	case CauseStartFailure:
		return ExitStart
	case CauseForced, CauseHostQuit:
		return ExitForced
	default:
		return ExitFailure
	}
}

// maxTerminationMessage is what Kubernetes keeps of a termination message, in bytes.
const maxTerminationMessage = 4096

// TerminationMessage is the outcome as a line of JSON, short enough for a
// container's termination message (4096 bytes).
func (o Outcome) TerminationMessage() []byte {
	for {
		b, err := json.Marshal(o)
		if err == nil && len(b) < maxTerminationMessage {
			return append(b, '\n')
		}
		o.Message = o.Message[:len(o.Message)/2]
	}
}

var (
	// ErrRunning says that another runner runs the machine.
	ErrRunning = errors.New("the machine is already running")
	// ErrStopped says that a start was given up because a stop was asked for.
	ErrStopped = errors.New("stopped before the machine ran")
)

// machineEnd is what was seen of a machine's end.
type machineEnd struct {
	status    string // of the process
	success   bool
	described string
	reason    qmp.ShutdownCause // of the SHUTDOWN event; "" if there was none
	guest     bool
	panicked  bool
	asked     bool   // this engine had asked the machine to end
	forced    bool   // and went on to quit or kill
	helper    string // what happened to a helper, "" if nothing did
}

// outcome judges an end.
func (m machineEnd) outcome() Outcome {
	o := Outcome{QEMUStatus: m.status, Orderly: m.guest && m.reason == qmp.CauseGuestShutdown}
	switch {
	case m.helper != "":
		o.Cause, o.Message = CauseHelperFailure, m.helper+"; the machine was shut down"
	case m.panicked:
		o.Cause, o.Message = CauseGuestPanic, "the guest panicked"
	case o.Orderly && m.asked && !m.forced:
		o.Cause, o.Message = CauseRequested, "the guest shut down on request"
	case o.Orderly:
		o.Cause, o.Message = CauseGuestShutdown, "the guest powered off"
	case m.forced:
		o.Cause, o.Message = CauseForced, "the guest did not shut down in time and was stopped"
	case !m.success:
		o.Cause, o.Message = CauseQEMUFailure, m.described
	case m.reason != "":
		o.Cause, o.Message = CauseHostQuit, "QEMU was told to quit ("+string(m.reason)+")"
	default:
		o.Cause, o.Message = CauseHostQuit, "QEMU ended without saying why"
	}
	return o
}
