package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Reconfigure changes the machine's configuration while it runs. What can be
// changed is changed at once, or as soon as the guest lets it; what cannot is
// listed in the condition RestartRequired and left. The configuration must be
// valid, as for [New], and of the same machine: otherwise the error says why not, and the machine goes on with the one that it has. Reconfigure
// does not wait; [State] tells what has become of it. Of a machine that is ending
// only the power-down timeout is changed: whatever else were done to the guest now
// would keep it from shutting down.
func (e *Engine) Reconfigure(c runnerconfig.Config) error {
	c = runnerconfig.Defaulted(c)
	vm := &c.Runner.VM
	err := check(&c)
	if have := e.o.Config.Runner.VM.Name; err == nil && vm.Name != have {
		err = fmt.Errorf("runner configuration: vm.name: the machine %q cannot become %q", have, vm.Name)
	}
	if err != nil {
		e.RefuseConfig(err)
		return err
	}
	c = e.withDigests(c)
	e.message(LevelInfo, "following a new configuration")
	e.change(func(w *desired) {
		if !live.GenerationAlone(&w.config, &c) {
			w.renewed++
		}
		w.config = c
		w.generation++
		w.problem = ""
	})
	e.mu.Lock()
	if e.login != nil {
		e.login.want(wantedUser(&e.desired.config))
	}
	e.mu.Unlock()
	e.update(func(s *State) { s.PowerdownTimeout = *vm.PowerdownTimeout })
	e.timeout.tell()
	e.tellDocuments()
	return nil
}

// RefuseConfig reports a configuration that could not even be read. The machine
// goes on with the one that it has.
func (e *Engine) RefuseConfig(reason error) {
	e.message(LevelError, "the new configuration is refused: %v", reason)
	e.change(func(w *desired) { w.problem = reason.Error() })
}

// Note reports something that happened around the engine.
func (e *Engine) Note(level Level, text string) { e.message(level, "%s", text) }

// rereadDisplaySecret has the files of the display secret read again.
func (e *Engine) rereadDisplaySecret() { e.change(func(w *desired) { w.secret = true }) }

// RereadSecrets has the files of the display secret read again, and the documents that the
// guest is provisioned by, of which a change waits for the next start.
func (e *Engine) RereadSecrets() {
	e.mu.Lock()
	before := e.desired.config
	e.mu.Unlock()
	now := e.withDigests(before)
	e.change(func(w *desired) {
		if w.config.Runner.CloudInit == before.Runner.CloudInit {
			w.config.Runner.CloudInit = now.Runner.CloudInit
		}
		if w.config.Runner.Sysprep == before.Runner.Sysprep {
			w.config.Runner.Sysprep = now.Runner.Sysprep
		}
	})
	e.tellDocuments()
	e.rereadDisplaySecret()
}

// tellDocuments reports which documents of Secrets are otherwise than at the start.
func (e *Engine) tellDocuments() {
	certificate := e.certificateDigest()
	e.reports(func() {
		changed := live.ChangedDocuments(&e.o.Config, &e.desired.config)
		if e.certificate != "" && e.certificate != certificate { // QEMU has read it when it started
			changed = append(changed, live.Document{Name: live.DisplayCertificate, Missing: certificate == ""})
		}
		if !slices.Equal(changed, e.state.ChangedDocuments) {
			e.state.ChangedDocuments = changed
			e.queueState()
		}
	})
}

// Pause stops the guest until [Engine.Resume]; a guest that is not running yet is
// paused once it is. The condition GuestExecuting tells what has become of it.
func (e *Engine) Pause() { e.change(func(w *desired) { w.power.Number++; w.power.Pause = true }) }

// Resume lets a paused guest go on, whatever has paused it.
func (e *Engine) Resume() { e.change(func(w *desired) { w.power.Number++; w.power.Pause = false }) }

func check(c *runnerconfig.Config) error {
	if err := runnerconfig.Validate(c); err != nil {
		return fmt.Errorf("runner configuration of %q: %w", c.Runner.VM.Name, err)
	}
	return nil
}

// powerdownTimeout is what the guest gets now to shut down.
func (e *Engine) powerdownTimeout() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Duration(*e.desired.config.Runner.VM.PowerdownTimeout) * time.Second
}

// Hurry is for a machine that is being stopped: its guest has at most that many seconds to shut
// down, counted from when it was asked; with force it is not waited for any more, and QEMU is told
// to quit, as after a second [Engine.Stop]. A time that is not less than what the guest has already
// changes nothing: the caller may not have more.
func (e *Engine) Hurry(seconds int64, force bool) {
	e.mu.Lock()
	less := seconds >= 0 && seconds < *e.desired.config.Runner.VM.PowerdownTimeout
	if less {
		e.desired.config.Runner.VM.PowerdownTimeout = &seconds
	}
	force = force && e.requests < stopQuit+1
	if force {
		e.requests = stopQuit + 1
	}
	e.mu.Unlock()
	if less {
		e.update(func(s *State) { s.PowerdownTimeout = seconds })
		e.timeout.tell()
	}
	if force {
		e.message(LevelInfo, "the guest is not waited for any more")
		e.stop[stopAsk]()
		e.stop[stopQuit]()
	}
}

// until ends a context at a time that may be moved meanwhile. The function that
// it returns must be called.
func (e *Engine) until(parent context.Context, at func() time.Time) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		for {
			moved := e.timeout.told()
			timer := time.NewTimer(time.Until(at()))
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
				return
			case <-moved:
				timer.Stop()
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
	}
}
