package runner

import (
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// reboot has the guest reset itself.
func reboot(t *testing.T, c *tinyguest.Console) {
	t.Helper()
	if err := c.Send("reboot"); err != nil {
		t.Fatal(err)
	}
	expect(t, c, "vmop-guest: rebooting")
}

// A guest that reboots does so where it is, unless its configuration says that
// changes wait: then the machine ends, for whoever starts it with them. A reset
// that somebody asks for is one in any case.
func TestGuestReboots(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t)
	counter := int64(0)
	c.Runner.ResetCounter = &counter
	// Half a minute after a reset is ten seconds here, many times what the firmware
	// takes.
	r := start(t, c, d, func(o *Options) { o.clock = clock{begin: time.Now(), speed: 3} })
	console := r.console(t)
	again := func(what string) {
		t.Helper()
		if err := console.WaitReady(withPatience(t)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	changes := func(wait bool) {
		t.Helper()
		r.reconfigure(t, &c, func(r *runnerconfig.Runner) {
			r.GuestResetEnds, r.VM.MaximumRAM = wait, 128<<20
			if wait {
				r.VM.MaximumRAM = 256 << 20
			}
		})
		told, require := "a reset of the machine is one again", live.ReasonNoRestartRequired
		if wait {
			told, require = "a reset by the guest ends the machine from now on", live.ReasonChangesPendingRestart
		}
		r.now(t, require, reason(live.RestartRequired, require))
		r.told(t, told)
	}
	changes(true)
	r.log.forgetMessages()
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { n := *r.ResetCounter + 1; r.ResetCounter = &n })
	again("a reset that is asked for while changes wait")
	r.told(t, "the machine was reset (host-qmp-system-reset)")
	r.told(t, "a reset by the guest ends the machine from now on")

	changes(false)
	reboot(t, console)
	again("a reboot after the changes were taken back")

	r.log.forgetMessages()
	changes(true)
	if err := console.Send("reboot"); err != nil {
		t.Fatal(err)
	}
	outcome, err := r.wait(t)
	if outcome.Cause != CauseGuestReset || outcome.ExitCode() != ExitOK || err != nil {
		t.Errorf("%+v, %v", outcome, err)
	}
	nothingLeft(t, d)
}
