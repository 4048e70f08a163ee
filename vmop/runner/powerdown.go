package runner

import (
	"context"
	"errors"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
)

// schedule divides the power-down timeout; all times count from its beginning.
type schedule struct {
	// Agent is when a guest whose agent was asked is also asked by ACPI.
	Agent time.Duration
	// Quit is when QEMU gets the quit command.
	Quit time.Duration
	// Kill is when it is killed: the whole timeout.
	Kill time.Duration
}

// powerDownSchedule leaves the agent half of the time before QEMU has to quit: a guest whose agent
// hangs still gets the ACPI button.
func powerDownSchedule(timeout time.Duration) schedule {
	timeout = max(timeout, 0)
	quit := timeout - min(timeout/5, quitGrace)
	return schedule{Agent: quit / 2, Quit: quit, Kill: timeout}
}

// pressInterval is the first pause before the ACPI button is pressed again; it doubles then. A
// booting guest ignores the button.
const pressInterval = 5 * time.Second

// powerDown ends the machine: by the guest's agent, by ACPI, by QEMU's quit, by SIGTERM, by
// SIGKILL. It returns once QEMU has ended and reports whether it went beyond asking the guest. ask
// ends the asking early; hurry also ends the waiting for quit.
func (e *Engine) powerDown(ask, hurry context.Context, m *machine) (forced bool, err error) {
	begin := time.Now()
	// The timeout may be changed meanwhile.
	now := func() schedule { return powerDownSchedule(e.powerdownTimeout()) }

	if ask.Err() == nil && now().Quit > 0 {
		guest, cancel := e.until(ask, func() time.Time { return begin.Add(now().Quit) })
		defer cancel()
		e.wakeGuest(guest, m)
		if e.askAgent(guest, m, func() time.Time { return begin.Add(now().Agent) }) || e.askACPI(guest, m) {
			return false, nil
		}
	}
	if m.qemu.ended() {
		return false, nil
	}
	e.terminating("the guest did not shut down: telling QEMU to quit")
	quitAt := max(time.Until(begin.Add(now().Kill)), min(quitGrace, time.Second))
	if ask.Err() != nil {
		quitAt = quitGrace // the rest of the timeout does not apply
	}
	quit, cancel := context.WithTimeout(hurry, quitAt)
	defer cancel()
	told := true
	if m.client != nil {
		if _, err := qmp.Do(quit, m.client, qmp.Quit{}); err != nil && !errors.Is(err, qmp.ErrClosed) {
			e.message(LevelWarning, "quit: %v", err)
			told = false
		}
	} else {
		m.qemu.signal(sigTERM)
	}
	if told && m.qemu.wait(quit) == nil {
		return true, nil
	}
	if hurry.Err() == nil { // a QEMU whose monitor hangs may still handle signals
		e.terminating("QEMU does not quit: terminating it")
		m.qemu.signal(sigTERM)
		term, cancelTerm := context.WithTimeout(hurry, termGrace)
		defer cancelTerm()
		if m.qemu.wait(term) == nil {
			return true, nil
		}
	}
	e.terminating("QEMU does not end: killing it")
	m.qemu.signal(sigKILL)
	gone, cancelGone := context.WithTimeout(context.Background(), killGrace)
	defer cancelGone()
	return true, m.qemu.wait(gone)
}

func (e *Engine) wakeGuest(ctx context.Context, m *machine) {
	if m.client == nil {
		return
	}
	status, err := answer(ctx, m.client, qmp.QueryStatus{})
	if err != nil || status.Status != qmp.RunStatePaused {
		return
	}
	e.message(LevelInfo, "the guest is paused: it is resumed to shut down")
	if err := do(ctx, m.client, qmp.Cont{}); err != nil {
		e.message(LevelWarning, "resume the guest: %v", err)
	}
}

// askAgent waits for the end of the machine. It returns false if no agent is connected or the guest
// has not ended in time.
func (e *Engine) askAgent(ctx context.Context, m *machine, until func() time.Time) bool {
	if m.client == nil || m.agentSocket == "" {
		return false
	}
	ctx, cancel := e.until(ctx, until)
	defer cancel()
	if !e.tellAgent(ctx, m) {
		return m.qemu.ended()
	}
	return m.qemu.wait(ctx) == nil
}

func (e *Engine) tellAgent(ctx context.Context, m *machine) bool {
	if err := agentShutdown(ctx, m.client, m.agentSocket); err != nil {
		if !errors.Is(err, errNoAgent) && !m.qemu.ended() {
			e.message(LevelWarning, "cannot shut the guest down by its agent: %v", err)
		}
		return false
	}
	m.agentAsked = true
	e.terminating("the guest agent was asked to shut down")
	return true
}

// askACPI presses the power button until the machine ends or ctx does. It also asks an agent that
// connects only now, because the guest still booted.
func (e *Engine) askACPI(ctx context.Context, m *machine) bool {
	if m.client == nil {
		return false
	}
	for interval := pressInterval; ; interval *= 2 {
		if m.agentSocket != "" && !m.agentAsked {
			e.tellAgent(ctx, m)
		}
		if _, err := qmp.Do(ctx, m.client, qmp.SystemPowerdown{}); err != nil {
			if m.qemu.ended() {
				return true
			}
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				e.message(LevelWarning, "press the power button: %v", err)
			}
			return m.qemu.wait(ctx) == nil
		}
		e.terminating("the power button was pressed")
		pause, cancel := context.WithTimeout(ctx, interval)
		err := m.qemu.wait(pause)
		cancel()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

// boundEnd kills a QEMU that has announced its end and is stuck. It returns once QEMU has ended, or
// is left to others to end.
func (e *Engine) boundEnd(m *machine) {
	if e.stuckAtEnd(m) {
		e.message(LevelError, "QEMU does not end although it has told so: killing it")
		m.qemu.signal(sigKILL)
	}
}

func (e *Engine) goesOn() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end.revived = e.end.revived || e.ending.Err() != nil
}

// stuckAtEnd waits for QEMU to end and reports whether it is stuck. It gets the power-down timeout,
// because it may have much to flush. A QEMU that answers then is not stuck: a custom machine type
// can keep it (-no-shutdown). One whose machine went on must not be killed.
func (e *Engine) stuckAtEnd(m *machine) bool {
	select {
	case <-m.qemu.done:
		return false
	case <-e.ending.Done():
	}
	begin := time.Now()
	grace, cancel := e.until(context.Background(), func() time.Time { return begin.Add(max(e.powerdownTimeout(), quitGrace)) })
	defer cancel()
	if m.qemu.wait(grace) == nil {
		return false
	}
	_, err := answer(context.Background(), m.client, qmp.QueryStatus{})
	e.mu.Lock()
	defer e.mu.Unlock()
	return err != nil && !m.qemu.ended() && !e.end.revived
}
