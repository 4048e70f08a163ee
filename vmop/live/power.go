package live

import (
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// The relevant run states of QEMU (RunState in qapi/run-state.json).
const (
	stateInMigrate = "inmigrate"
	statePrelaunch = "prelaunch"
	stateRunning   = "running"
	statePaused    = "paused"
	stateIOError   = "io-error"
	// stateGuestPanicked and stateWatchdog occur if QEMU was configured to pause for them; cont
	// leaves both.
	stateGuestPanicked = "guest-panicked"
	stateWatchdog      = "watchdog"
	// stateInternalError is only left by a reset.
	stateInternalError = "internal-error"
)

// resetCalm is the time after a requested reset in which another one is not attributed to the
// guest: SeaBIOS resets a machine a second time after an external reset, on a busy host only after
// some seconds.
const resetCalm = 30 * time.Second

func (d *decider) reset() {
	if n := d.in.Observed.Resets; n != d.in.Memory.Resets {
		d.out.Memory.Resets, d.out.Memory.ResetAt = n, d.in.Now
	}
	if !d.resetAsked() {
		return // it is one, whatever a reset by the guest does
	}
	ends := d.in.Config.Runner.GuestResetEnds
	if ends == d.in.Memory.ResetEnds && !d.in.Memory.ResetUnsure {
		return
	}
	if ends {
		calm := d.out.Memory.ResetAt
		if asked := d.in.Memory.Tries[Reset{}.part()].Last; asked.After(calm) {
			calm = asked // QEMU may not have reported it yet
		}
		if calm = calm.Add(resetCalm); d.in.Now.Before(calm) {
			d.wake(calm)
			return
		}
	}
	d.attempt(d.goal(ends), SetResetAction{Ends: ends})
}

func (d *decider) resetAsked() bool {
	counter, done := resetCounter(d.in.Config), d.in.Memory.ResetCounter
	switch {
	case counter < done || d.in.Observed.RunState == statePrelaunch:
		// The counter was started anew, or the guest does not execute yet.
		d.out.Memory.ResetCounter = counter
	case counter > done:
		goal := d.goal(counter)
		given := d.givenUp(Reset{}, goal)
		var step Step = Reset{Counter: counter}
		if (d.in.Memory.ResetEnds || d.in.Memory.ResetUnsure) && !given {
			step = SetResetAction{Ends: false}
		}
		exhausted, problem := d.attempt(goal, step)
		if exhausted {
			d.condition(ResetDone, False, ReasonRefused, "the machine was not reset%s", because(problem))
		} else {
			d.condition(ResetDone, False, ReasonAdjusting, "the machine is reset%s", because(problem))
		}
		return given
	}
	d.asConfigured(ResetDone)
	return true
}

const (
	// spaceEnough is the free space in bytes at which a machine with a full disk is resumed: with
	// less it would stop again at once.
	spaceEnough = 64 << 20
	// spaceInterval is the polling interval for a full disk: no event reports free space.
	spaceInterval = 5 * time.Second
	// spaceCalm is how long a machine must have run since it was resumed for the next full disk to
	// be a new problem.
	spaceCalm = 10 * time.Minute
)

func (d *decider) power() {
	state, request := d.in.Observed.RunState, d.in.Power
	open := request.Number > d.in.Memory.Power
	if state != stateIOError {
		d.out.Memory.Full = false
	}
	stopped := state == statePaused || state == stateIOError || state == stateGuestPanicked || state == stateWatchdog
	resuming := open && !request.Pause && stopped
	switch {
	case state == statePrelaunch || state == stateInMigrate:
		if state == statePrelaunch {
			exhausted, problem := d.attempt("start", Cont{})
			if exhausted {
				d.condition(GuestExecuting, False, ReasonRefused, "the guest cannot be started%s", because(problem))
				return
			}
		}
		d.condition(GuestExecuting, False, ReasonNotStarted, "the guest has not begun to execute")
		return
	case open && request.Pause && state == stateRunning:
		if exhausted, problem := d.attempt(d.request(), Stop{Request: request.Number}); exhausted {
			d.condition(GuestExecuting, True, ReasonRefused, "the guest cannot be paused%s", because(problem))
			return
		}
	case resuming:
		if exhausted, problem := d.attempt(d.request(), Cont{Request: request.Number}); exhausted {
			d.condition(GuestExecuting, False, ReasonRefused, "the guest cannot be resumed%s", because(problem))
			return
		}
	case open:
		d.out.Memory.Power = request.Number // it is in that state already, or cannot reach it
	}
	switch e := d.in.Observed.IOError; {
	case state == stateRunning:
		d.condition(GuestExecuting, True, ReasonRunning, "")
	case state == statePaused:
		d.condition(GuestExecuting, False, ReasonPaused, "the guest is paused")
	case state == stateIOError && e != nil && e.NoSpace:
		if !resuming {
			d.waitForSpace(*e)
		}
		d.condition(GuestExecuting, False, ReasonDiskFull, "the guest is paused because there is no space for %s (%s, %s free); it goes on by itself when %s are free", e.Device, e.File, runnerconfig.Bytes(e.Free), runnerconfig.Bytes(spaceEnough))
	case state == stateIOError && e != nil:
		d.condition(GuestExecuting, False, ReasonDiskError, "the guest is paused because of an error of %s (%s)%s; it goes on when it is resumed", e.Device, e.File, because(e.Reason))
	case state == stateIOError:
		d.condition(GuestExecuting, False, ReasonDiskError, "the guest is paused because of a disk error; it goes on when it is resumed")
	case state == stateGuestPanicked:
		d.condition(GuestExecuting, False, ReasonGuestPanicked, "the guest has panicked and is paused; reset it, or resume it to let it write its dump")
	case state == stateWatchdog:
		d.condition(GuestExecuting, False, ReasonWatchdog, "the guest is paused because it has not served its watchdog; it goes on when it is resumed")
	case state == stateInternalError:
		d.condition(GuestExecuting, False, ReasonInternalError, "QEMU cannot execute the guest any further; only a reset helps")
	default:
		d.condition(GuestExecuting, False, ReasonStopped, "QEMU's run state is %s", state)
	}
}

func (d *decider) request() string { return "request " + d.goal(d.in.Power.Number) }

func (d *decider) waitForSpace(e IOError) {
	if !d.out.Memory.Full {
		d.out.Memory.Full = true
		// A machine that ran for long has used the space that was free.
		if t := d.out.Memory.Tries[Cont{}.part()]; d.in.Now.Sub(t.Last) > spaceCalm {
			delete(d.out.Memory.Tries, Cont{}.part())
		}
	}
	if e.Free < spaceEnough {
		d.wake(d.in.Now.Add(spaceInterval))
		return
	}
	// Attempts are bounded: free space may not be available to this file (a quota).
	d.attempt(d.goal("space"), Cont{})
}
