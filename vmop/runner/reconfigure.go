package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Reconfigure changes the machine's configuration while it runs. Changes take effect at once, or as
// soon as the guest permits; those that cannot are listed in the condition RestartRequired. The
// configuration must be valid, as for [New], and of the same machine: otherwise an error is
// returned, and the machine keeps its configuration. Reconfigure does not wait; [State] reports the
// result. For a machine that is ending, only the power-down timeout is changed: any other change
// could keep the guest from shutting down.
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

// RefuseConfig reports a configuration that could not even be read. The machine keeps its
// configuration.
func (e *Engine) RefuseConfig(reason error) {
	e.message(LevelError, "the new configuration is refused: %v", reason)
	e.change(func(w *desired) { w.problem = reason.Error() })
}

// Note reports a message from outside of the engine.
func (e *Engine) Note(level Level, text string) { e.message(level, "%s", text) }

func (e *Engine) rereadDisplaySecret() { e.change(func(w *desired) { w.secret = true }) }

// RereadSecrets rereads the files of the display secret, and the documents of the guest's
// provisioning, of which a change waits for the next start.
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

// Pause stops the guest until [Engine.Resume]; a guest that is not running yet is paused once it
// is. The condition GuestExecuting reports the result.
func (e *Engine) Pause() { e.change(func(w *desired) { w.power.Number++; w.power.Pause = true }) }

// Resume resumes a paused guest, whatever has paused it.
func (e *Engine) Resume() { e.change(func(w *desired) { w.power.Number++; w.power.Pause = false }) }

func check(c *runnerconfig.Config) error {
	if err := runnerconfig.Validate(c); err != nil {
		return fmt.Errorf("runner configuration of %q: %w", c.Runner.VM.Name, err)
	}
	return nil
}

func (e *Engine) powerdownTimeout() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Duration(*e.desired.config.Runner.VM.PowerdownTimeout) * time.Second
}

// Hurry shortens the stop of a machine: its guest has at most that many seconds to shut down,
// counted from when it was asked; with force QEMU is told to quit without waiting for the guest, as
// after a second [Engine.Stop]. It never lengthens the time.
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

// until returns a context that ends at a time which may change meanwhile.
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
