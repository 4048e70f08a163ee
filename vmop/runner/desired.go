package runner

import (
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// desired is the machine's desired state, with the signals since the follower last took it.
type desired struct {
	config     runnerconfig.Config
	generation int // counts the configurations given
	renewed    int // counts those that allow given-up steps to be tried again
	power      live.Power
	resets     int
	ioReason   string
	console    bool     // a client of the display has connected or disconnected
	viewers    []string // VNC clients that were admitted since
	lost       bool
	secret     bool              // the files of the display secret are to be read
	refused    map[string]string // devices that the guest did not release
	problem    string            // of the configuration
}

// ConfigurationAccepted is the condition that is False for a configuration file that cannot be
// used.
const ConfigurationAccepted = "ConfigurationAccepted"

func (w desired) conditions() []live.Condition {
	if w.problem != "" {
		return []live.Condition{{Type: ConfigurationAccepted, Status: live.False, Reason: "Invalid", Message: "the last good configuration is used: " + w.problem}}
	}
	return []live.Condition{{Type: ConfigurationAccepted, Status: live.True, Reason: "Valid"}}
}

func viewersChanged(w *desired) { w.console = true }
