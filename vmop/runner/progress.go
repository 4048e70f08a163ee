package runner

import (
	"errors"
	"slices"
	"sync"
)

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

// phases are the phases of a machine in their order.
var phases = []Phase{PhaseInitializing, PhaseStarting, PhaseBooting, PhaseTerminating, PhaseStopped}
