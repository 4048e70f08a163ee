package runner

import (
	"errors"
	"slices"
	"sync"
)

type progress struct {
	mu       sync.Mutex
	furthest int  // of phases, counted from 1, without PhaseStopped; 0 before the first
	over     bool // Run has returned
	err      error
	changed  broadcast
}

func (p *progress) enters(phase Phase) {
	if phase != PhaseStopped { // reached when all is closed, see ends
		p.mu.Lock()
		p.furthest = max(p.furthest, slices.Index(phases, phase)+1)
		p.mu.Unlock()
		p.changed.tell()
	}
}

func (p *progress) ends(err error) {
	p.mu.Lock()
	p.over, p.err = true, err
	p.mu.Unlock()
	p.changed.tell()
}

func (p *progress) look(phase Phase) (reached, over bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if phase == PhaseStopped {
		return p.over && !errors.Is(p.err, ErrRunning) && !errors.Is(p.err, ErrLocked), p.over, p.err
	}
	return p.furthest > slices.Index(phases, phase), p.over, p.err
}

var phases = []Phase{PhaseInitializing, PhaseStarting, PhaseBooting, PhaseTerminating, PhaseStopped}
