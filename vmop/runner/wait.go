package runner

import (
	"context"
	"fmt"
	"slices"
)

// Wait waits until the machine has reached a phase, and returns its state then, which may already
// be of a later phase. [PhaseBooting] is reached when the guest executes, and [PhaseStopped] when
// [Engine.Run] has closed everything and is about to return: another engine may have the machine
// then. The error is the end of ctx, or that the machine has ended without having reached the
// phase; it wraps Run's error. Wait may be called before Run, from any goroutine and any number of
// times.
func (e *Engine) Wait(ctx context.Context, p Phase) (State, error) {
	if !slices.Contains(phases, p) {
		return e.State(), fmt.Errorf("wait for a machine: there is no phase %q", p)
	}
	for {
		changed := e.progress.changed.told() // before the check, so that no change is missed
		reached, over, err := e.progress.look(p)
		s := e.State()
		switch {
		case reached:
			return s, nil
		case over && err != nil:
			return s, fmt.Errorf("%s has ended without reaching the phase %s: %w", s.Name, p, err)
		case over:
			return s, fmt.Errorf("%s has ended without reaching the phase %s: %s", s.Name, p, s.Message)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s, fmt.Errorf("wait for %s to reach the phase %s: %w", s.Name, p, context.Cause(ctx))
		}
	}
}
