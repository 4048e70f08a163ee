package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
)

const (
	// secondRequest is the time between two requests to stop by the same signal: closer ones would
	// count as one.
	secondRequest = 2 * runner.SameRequest
	// stopReserve is the time for a stop beyond the machine's power-down timeout: the runner has to
	// end QEMU and clean up.
	stopReserve = time.Minute
	// monitorGreeting bounds the wait for a monitor's greeting, which comes at once unless another
	// client has the monitor.
	monitorGreeting = 5 * time.Second
)

// ErrStillRuns is the error when a machine did not stop in time. It may stop later.
var ErrStillRuns = errors.New("it still runs")

// StopOptions are the options of stopping a machine.
type StopOptions struct {
	// Now does not wait for the guest, whose disks are then as after a power cut.
	Now bool
	// Timeout bounds the wait; 0 is the machine's power-down timeout and a minute. After it, the
	// machine is not stopped by force, unless Force is set.
	Timeout time.Duration
	// Force stops the machine as Now does once the guest has not shut down within the timeout.
	Force bool
}

// Stop asks the guest to shut down and waits until it has: at most for the machine's power-down
// timeout, after which its runner stops it without its consent, or as the options say. A machine
// that does not run is no error.
func (m *Machine) Stop(ctx context.Context, o StopOptions) error {
	timeout := o.Timeout
	if timeout == 0 {
		timeout = time.Duration(m.State.PowerdownTimeout)*time.Second + stopReserve
	}
	err := m.stop(ctx, o.Now, timeout)
	if o.Force && !o.Now && errors.Is(err, ErrStillRuns) {
		err = m.stop(ctx, true, stopReserve)
	}
	return err
}

func (m *Machine) stop(ctx context.Context, now bool, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w after %v", ErrStillRuns, timeout))
	defer cancel()
	switch {
	case m.Runner != 0:
		return m.stopRunner(ctx, now)
	case m.QEMU != 0:
		return m.stopOrphan(ctx, now)
	}
	return nil
}

// stopRunner asks the runner once: a second SIGTERM would be a request not to wait for the guest
// any more.
func (m *Machine) stopRunner(ctx context.Context, now bool) (err error) {
	proc, err := runner.OpenHolder(m.Data, m.Runner)
	if err != nil || proc == nil {
		return err
	}
	defer func() { err = errors.Join(err, proc.Close()) }()
	state := m.State
	if read, err := runner.ReadState(m.StateFile()); err == nil && read.RunnerPID == m.Runner {
		state = read // the present state
	}
	for i, request := range stopRequests(state, now) {
		if i > 0 {
			if ended, err := proc.Wait(ctx, secondRequest); ended || err != nil {
				return err
			}
		}
		if err := proc.Signal(request); err != nil {
			return err
		}
	}
	_, err = proc.Wait(ctx, 0)
	return err
}

// stopRequests are the successive signals that ask a runner to stop. A runner of an older vmop does
// not handle SIGQUIT; there a second SIGTERM has that meaning, and a third kills QEMU.
func stopRequests(state runner.State, now bool) []unix.Signal {
	asked := state.Phase == runner.PhaseTerminating
	switch {
	case now && state.QuitSignal:
		return []unix.Signal{unix.SIGQUIT}
	case now && !asked:
		return []unix.Signal{unix.SIGTERM, unix.SIGTERM}
	case now || !asked:
		return []unix.Signal{unix.SIGTERM}
	}
	return nil
}

func (m *Machine) stopOrphan(ctx context.Context, now bool) (err error) {
	proc, err := runner.OpenHolder(m.Data, m.QEMU)
	if err != nil || proc == nil {
		return err
	}
	defer func() { err = errors.Join(err, proc.Close()) }()
	if now {
		if err := proc.Signal(unix.SIGTERM); err != nil { // QEMU flushes its caches on it
			return err
		}
	} else if err := pressPowerButton(ctx, m.Socket(qemucmd.SocketToolMonitor)); err != nil {
		return fmt.Errorf("ask the guest: %w", err)
	}
	_, err = proc.Wait(ctx, 0)
	return err
}

func pressPowerButton(ctx context.Context, socket string) error {
	c, err := qmp.Dial(ctx, socket, qmp.Options{Handshake: monitorGreeting})
	if err != nil {
		return err
	}
	_, err = qmp.Do(ctx, c, qmp.SystemPowerdown{})
	return errors.Join(err, c.Close())
}
