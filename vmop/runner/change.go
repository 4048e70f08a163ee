package runner

func (e *Engine) takeDesired() desired {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.desired
	e.desired.console, e.desired.secret, e.desired.refused = false, false, nil
	e.desired.viewers, e.desired.lost = nil, false
	return w
}

// putBack restores signals that had no effect, except those that were handled by taking them.
func (e *Engine) putBack(w desired) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.desired.console = e.desired.console || w.console
	e.desired.viewers = append(w.viewers, e.desired.viewers...)
	e.desired.lost = e.desired.lost || w.lost
}

func (e *Engine) change(do func(*desired)) {
	e.mu.Lock()
	do(&e.desired)
	e.mu.Unlock()
	e.wakeFollower()
}

func (e *Engine) wakeFollower() {
	select {
	case e.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}
