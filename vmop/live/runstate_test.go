package live_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/live"
)

// Each of QEMU's run states is told in words, and a request to resume is carried
// out in those that it can end.
func TestRunStates(t *testing.T) {
	for _, tt := range []struct {
		state, reason string
		resumes       bool
	}{
		{"running", live.ReasonRunning, false},
		{"paused", live.ReasonPaused, true},
		{"io-error", live.ReasonDiskError, true},
		{"guest-panicked", live.ReasonGuestPanicked, true},
		{"watchdog", live.ReasonWatchdog, true},
		{"internal-error", live.ReasonInternalError, false},
		{"shutdown", live.ReasonStopped, false},
		{"suspended", live.ReasonStopped, false},
	} {
		c := config(1, 0, 0)
		decide := func(power live.Power) live.Decision {
			return live.Decide(live.Input{
				Config: c, Machine: live.Machine{Started: c, RAM: ram}, Memory: live.Start(c), Power: power,
				Observed: live.Observed{RunState: tt.state},
			})
		}
		d := decide(live.Power{})
		if got := d.Conditions[5]; got.Type != live.GuestExecuting || got.Reason != tt.reason || (got.Status == live.True) != (tt.state == "running") || got.Status == live.False && got.Message == "" || len(d.Steps) > 0 {
			t.Errorf("%s: %+v, %+v", tt.state, got, d.Steps)
		}
		d = decide(live.Power{Number: 1})
		if resumes := len(d.Steps) == 1 && d.Steps[0] == (live.Cont{Request: 1}); resumes != tt.resumes {
			t.Errorf("%s: resumed by %+v", tt.state, d.Steps)
		}
	}
}
