package runner

import (
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// wish is the machine's desired state, with what the follower has to be told once: signals that
// came since it looked last.
type wish struct {
	config     runnerconfig.Config
	generation int // counts the configurations given
	renewed    int // counts those after which what was given up is tried again
	power      live.Power
	resets     int
	ioReason   string
	console    bool              // a client of the display came or went
	viewers    []string          // VNC clients that were let in since
	lost       bool              // events were lost
	secret     bool              // the files of the display secret are to be read
	refused    map[string]string // devices that the guest did not release
	problem    string            // with the configuration
}

// ConfigurationAccepted is the condition that tells of a configuration file that
// cannot be used.
const ConfigurationAccepted = "ConfigurationAccepted"

func (w wish) conditions() []live.Condition {
	if w.problem != "" {
		return []live.Condition{{Type: ConfigurationAccepted, Status: live.False, Reason: "Invalid", Message: "the last good configuration is used: " + w.problem}}
	}
	return []live.Condition{{Type: ConfigurationAccepted, Status: live.True, Reason: "Valid"}}
}

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
