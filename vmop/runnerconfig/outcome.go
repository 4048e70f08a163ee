package runnerconfig

import (
	"encoding/json"
	"strings"
)

// Cause is why a machine ended.
type Cause string

// The causes that an [Outcome] can have.
const (
	// CauseGuestShutdown: the guest powered itself off.
	CauseGuestShutdown Cause = "guest-shutdown"
	// CauseGuestReset: the guest reset itself, and the machine ended because changes waited for
	// that.
	CauseGuestReset Cause = "guest-reset"
	// CauseRequested: the guest shut down on request.
	CauseRequested Cause = "host-request"
	// CauseForced: the guest did not shut down in time, and was ended. Its disks are in the state
	// of a power cut.
	CauseForced Cause = "host-forced"
	// CauseHostQuit: another process told QEMU to quit or killed it with a signal that it handles.
	CauseHostQuit Cause = "host-quit"
	// CauseGuestPanic: the guest crashed, which ended QEMU.
	CauseGuestPanic Cause = "guest-panic"
	// CauseQEMUFailure: QEMU ended by itself, with an error or by a signal.
	CauseQEMUFailure Cause = "qemu-failure"
	// CauseHelperFailure: a process that the machine needs (swtpm) ended, and
	// the machine was shut down because of it.
	CauseHelperFailure Cause = "helper-failure"
	// CauseStartFailure: the machine never ran.
	CauseStartFailure Cause = "start-failure"
)

// Failure reports whether the cause is a failure. An unknown cause is one.
func (c Cause) Failure() bool {
	switch c {
	case CauseGuestShutdown, CauseGuestReset, CauseRequested, CauseForced, CauseHostQuit:
		return false
	}
	return true
}

// Outcome is how a machine ended. The runner passes it to the program that started it: in a pod as
// the termination message of its container.
type Outcome struct {
	Cause Cause `json:"cause"`
	// Message is one sentence for the user.
	Message string `json:"message"`
	// Orderly reports whether the guest shut its file systems down.
	Orderly bool `json:"orderly"`
	// QEMUStatus is QEMU's exit status as the operating system reports it, such as "exit status 0";
	// "" if QEMU was not started.
	QEMUStatus string `json:"qemuStatus,omitempty"`
}

// StatusKilled is the QEMUStatus of a QEMU that was killed by SIGKILL, for example by the kernel
// for lack of memory.
const StatusKilled = "signal: killed"

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

// ExitCode is the exit code of the outcome.
func (o Outcome) ExitCode() int {
	switch o.Cause {
	case CauseGuestShutdown, CauseGuestReset, CauseRequested:
		return ExitOK
	case CauseStartFailure:
		return ExitStart
	case CauseForced, CauseHostQuit:
		return ExitForced
	default:
		return ExitFailure
	}
}

const maxTerminationMessage = 4096

// TerminationMessage is the outcome as a line of JSON, short enough for a container's termination
// message (4096 bytes).
func (o Outcome) TerminationMessage() []byte {
	for {
		b, err := json.Marshal(o)
		if err == nil && len(b) < maxTerminationMessage {
			return append(b, '\n')
		}
		o.Message = o.Message[:len(o.Message)/2]
		if o.Message == "" {
			o.Cause, o.QEMUStatus = o.Cause[:min(len(o.Cause), 64)], o.QEMUStatus[:min(len(o.QEMUStatus), 64)]
		}
	}
}

// ParseOutcome parses a termination message. It returns false if no runner of this project wrote
// it: VM-Operator's writes none, and a container that never ran has its runtime's.
func ParseOutcome(message string) (Outcome, bool) {
	var o Outcome
	if len(message) > maxTerminationMessage || !strings.HasPrefix(message, "{") || json.Unmarshal([]byte(message), &o) != nil {
		return Outcome{}, false
	}
	return o, o.Cause != ""
}
