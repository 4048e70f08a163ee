package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"
)

func (e *Engine) supervise(m *machine) (Outcome, error) {
	running, terminate := context.WithCancel(context.Background())
	defer terminate()
	var watching sync.WaitGroup
	failed := e.awaitEnd(m, e.startWatchers(running, m, &watching))
	terminate()
	var forced bool
	var stuck error
	if !m.qemu.ended() {
		e.mu.Lock()
		e.end.asked = true
		e.mu.Unlock()
		e.enter(PhaseTerminating, "shutting the guest down")
		if failed != nil {
			e.message(LevelError, "%s; shutting the machine down", failed.describe())
		}
		forced, stuck = e.powerDown(e.stops[stopQuit], e.stops[stopKill], m)
	}
	if stuck != nil {
		// The process cannot be killed, and its events do not end.
		return Outcome{Cause: CauseQEMUFailure}, fmt.Errorf("QEMU (process %d) is stuck: %w", m.qemu.process.Pid, stuck)
	}
	// The socket may still hold its last events.
	select {
	case <-m.client.Done():
	case <-time.After(eventGrace):
	}
	if err := errors.Join(m.client.Close(), endHelpers(slices.Concat(m.helpers, m.servers))); err != nil {
		e.message(LevelWarning, "%v", err)
	}
	watching.Wait()
	return e.judge(m, forced, failed)
}

// startWatchers starts the goroutines that run until QEMU has ended, or until running ends. The
// channel receives helpers that have ended.
func (e *Engine) startWatchers(running context.Context, m *machine, watching *sync.WaitGroup) <-chan *child {
	watching.Go(func() { e.watchAll(m) })
	if m.guest != nil {
		watching.Go(func() { m.guest.follow(running) })
	}
	if m.login != nil {
		watching.Go(func() { m.login.follow(context.Background(), m.client) }) // it ends with QEMU
	}
	watching.Go(func() { m.follower.follow(running) })
	watching.Go(func() { e.boundEnd(m) })
	helperEnded := make(chan *child, len(m.helpers))
	for _, h := range m.helpers {
		watching.Go(func() {
			<-h.done
			helperEnded <- h
		})
	}
	for _, s := range m.servers {
		watching.Go(func() { e.servesShare(m, s) })
	}
	return helperEnded
}

func (e *Engine) awaitEnd(m *machine, helperEnded <-chan *child) (failed *child) {
	select {
	case <-m.qemu.done:
	case <-e.stops[stopAsk].Done():
	case failed = <-helperEnded:
		// It may have ended because QEMU did.
		grace, cancel := context.WithTimeout(context.Background(), helperGrace)
		defer cancel()
		if m.qemu.wait(grace) == nil {
			return nil
		}
	}
	return failed
}

func (e *Engine) judge(m *machine, forced bool, failed *child) (Outcome, error) {
	e.mu.Lock()
	known := e.end
	e.mu.Unlock()
	end := machineEnd{
		status: m.qemu.status.String(), success: m.qemu.status.Success(),
		described: m.qemu.describe(), forced: forced, hurried: e.stops[stopQuit].Err() != nil,
		asked: known.asked, panicked: known.panicked, resetEnds: known.resetEnds,
	}
	if known.shutdown != nil {
		end.reason, end.guest = known.shutdown.Reason, known.shutdown.Guest
	}
	if failed != nil {
		end.helper = failed.describe()
	}
	if ws, ok := m.qemu.status.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == sigKILL {
		end.memory = e.memory.explain(ownCgroup())
	}
	o := end.outcome()
	if o.ExitCode() != ExitOK {
		return o, errors.New(o.Message)
	}
	return o, nil
}
