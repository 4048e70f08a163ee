package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// phases are the phases of a machine in their order.
var phases = []Phase{PhaseInitializing, PhaseStarting, PhaseBooting, PhaseTerminating, PhaseStopped}

// progress is how far a machine has come, for those who wait for it.
type progress struct {
	mu       sync.Mutex
	furthest int   // of phases, counted from 1, without PhaseStopped; 0 before the first
	over     bool  // Run has returned
	err      error // what it returned
	changed  broadcast
}

// enters notes a phase that the machine enters.
func (p *progress) enters(phase Phase) {
	if phase != PhaseStopped { // which is reached when all is closed, see ends
		p.mu.Lock()
		p.furthest = max(p.furthest, slices.Index(phases, phase)+1)
		p.mu.Unlock()
		p.changed.tell()
	}
}

// ends notes what Run returns.
func (p *progress) ends(err error) {
	p.mu.Lock()
	p.over, p.err = true, err
	p.mu.Unlock()
	p.changed.tell()
}

// look reports whether a phase is reached, and whether and how the machine has ended.
func (p *progress) look(phase Phase) (reached, over bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if phase == PhaseStopped {
		return p.over && !errors.Is(p.err, ErrRunning) && !errors.Is(p.err, ErrLocked), p.over, p.err
	}
	return p.furthest > slices.Index(phases, phase), p.over, p.err
}

// Wait waits until the machine has reached a phase, and returns its state as it is then,
// which may be of a later phase already. [PhaseBooting] is reached when the guest
// executes, and [PhaseStopped] when [Engine.Run] has closed everything and is about to
// return: another engine may have the machine then. The error says that ctx has ended,
// or that the machine has ended without having reached the phase; it wraps what Run
// returned. Wait may be called before Run, from any goroutine and any number of times.
func (e *Engine) Wait(ctx context.Context, p Phase) (State, error) {
	if !slices.Contains(phases, p) {
		return e.State(), fmt.Errorf("wait for a machine: there is no phase %q", p)
	}
	for {
		changed := e.progress.changed.told() // before looking: nothing is missed
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
