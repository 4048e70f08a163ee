package live_test

import (
	"strings"
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

// A guest that waits for room is told with how much there is, and how much it waits for.
func TestDiskFullSaysHowMuch(t *testing.T) {
	var in live.Input
	in.Observed.RunState = "io-error"
	in.Observed.IOError = &live.IOError{Device: "data", File: "/srv/data.img", NoSpace: true, Free: 3 << 20}
	for _, c := range live.Decide(in).Conditions {
		if c.Type == live.GuestExecuting && (c.Reason != live.ReasonDiskFull || !strings.Contains(c.Message, "data (/srv/data.img, 3 MiB free); it goes on by itself when 64 MiB are free")) {
			t.Errorf("%+v", c)
		}
	}
}
