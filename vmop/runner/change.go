package runner

// takeDesired returns the desired state and clears its one-shot signals.
func (e *Engine) takeDesired() desired {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.desired
	e.desired.console, e.desired.secret, e.desired.refused = false, false, nil
	e.desired.viewers, e.desired.lost = nil, false
	return w
}

// putBack sets the signals again that came to nothing. The secret is read, and refusals
// are told, by whoever has taken them.
func (e *Engine) putBack(w desired) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.desired.console = e.desired.console || w.console
	e.desired.viewers = append(w.viewers, e.desired.viewers...)
	e.desired.lost = e.desired.lost || w.lost
}

// change changes the desired state and wakes the follower.
func (e *Engine) change(do func(*desired)) {
	e.mu.Lock()
	do(&e.desired)
	e.mu.Unlock()
	e.wakeFollower()
}

// wakeFollower has the follower look at the machine.
func (e *Engine) wakeFollower() {
	select {
	case e.wake <- struct{}{}:
	default: // it will look anyway
	}
}
