package runner

import (
	"errors"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Cause is why a machine ended.
type Cause = runnerconfig.Cause

// The causes that an [Outcome] can have.
const (
	CauseGuestShutdown = runnerconfig.CauseGuestShutdown
	CauseGuestReset    = runnerconfig.CauseGuestReset
	CauseRequested     = runnerconfig.CauseRequested
	CauseForced        = runnerconfig.CauseForced
	CauseHostQuit      = runnerconfig.CauseHostQuit
	CauseGuestPanic    = runnerconfig.CauseGuestPanic
	CauseQEMUFailure   = runnerconfig.CauseQEMUFailure
	CauseHelperFailure = runnerconfig.CauseHelperFailure
	CauseStartFailure  = runnerconfig.CauseStartFailure
)

// Outcome is how a machine ended.
type Outcome = runnerconfig.Outcome

// The exit codes of a program that runs one engine.
const (
	ExitOK      = runnerconfig.ExitOK
	ExitStart   = runnerconfig.ExitStart
	ExitUsage   = runnerconfig.ExitUsage
	ExitForced  = runnerconfig.ExitForced
	ExitFailure = runnerconfig.ExitFailure
)

// ErrRunning is the error when another runner runs the machine.
var ErrRunning = errors.New("the machine is already running")

const stoppedBefore = "stopped before the machine ran"

type machineEnd struct {
	status    string // of the process
	success   bool
	described string
	reason    qmp.ShutdownCause // of the SHUTDOWN event; "" if there was none
	guest     bool
	panicked  bool
	resetEnds bool   // QEMU was told to end at a reset
	asked     bool   // the machine was asked to end
	forced    bool   // and QEMU was told to quit or killed
	hurried   bool   // by a request not to wait for the guest
	memory    string // why the kernel killed QEMU, "" if it did not
	helper    string // how a helper failed, "" if none did
}

// reset reports whether the machine ended in place of a reset; see [live.SetResetAction]. It
// excludes a custom machine type that ends at resets by itself: no change waits for that.
func (m machineEnd) reset() bool {
	return m.resetEnds && (m.reason == qmp.CauseGuestReset || m.reason == qmp.CauseHostReset)
}

func (m machineEnd) outcome() Outcome {
	o := Outcome{QEMUStatus: m.status, Orderly: m.guest && m.reason == qmp.CauseGuestShutdown}
	switch {
	case m.helper != "":
		o.Cause, o.Message = CauseHelperFailure, m.helper+"; the machine was shut down"
	case m.reset() && m.asked && !m.forced:
		o.Cause, o.Message = CauseRequested, "the guest was asked to shut down and reset itself, which ended the machine"
	case m.reset() && !m.forced: // also after a panic
		o.Cause, o.Message = CauseGuestReset, "the guest reset itself, and changes wait for a new start"
	case m.panicked:
		o.Cause, o.Message = CauseGuestPanic, "the guest panicked"
	case o.Orderly && m.asked && !m.forced:
		o.Cause, o.Message = CauseRequested, "the guest shut down on request"
	case o.Orderly:
		o.Cause, o.Message = CauseGuestShutdown, "the guest powered off"
	case m.forced && m.hurried:
		o.Cause, o.Message = CauseForced, "it was stopped without waiting for the guest, as was asked"
	case m.forced:
		o.Cause, o.Message = CauseForced, "the guest did not shut down in time and was stopped"
	case !m.success && m.memory != "":
		o.Cause, o.Message = CauseQEMUFailure, m.described+": "+m.memory
	case !m.success:
		o.Cause, o.Message = CauseQEMUFailure, m.described
	case m.reason != "":
		o.Cause, o.Message = CauseHostQuit, "QEMU was told to quit ("+string(m.reason)+")"
	default:
		o.Cause, o.Message = CauseHostQuit, "QEMU ended without saying why"
	}
	return o
}
