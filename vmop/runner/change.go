package runner

// takeWish returns the desired state and clears its one-shot signals.
func (e *Engine) takeWish() wish {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.wished
	e.wished.console, e.wished.secret, e.wished.refused = false, false, nil
	e.wished.viewers, e.wished.lost = nil, false
	return w
}

// putBack sets the signals of a wish again that came to nothing. The secret is read, and refusals
// are told, by whoever has taken them.
func (e *Engine) putBack(w wish) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wished.console = e.wished.console || w.console
	e.wished.viewers = append(w.viewers, e.wished.viewers...)
	e.wished.lost = e.wished.lost || w.lost
}

// change changes the desired state and wakes the follower.
func (e *Engine) change(do func(*wish)) {
	e.mu.Lock()
	do(&e.wished)
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
