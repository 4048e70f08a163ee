package runner

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// setAction changes what QEMU does when a guest panics or forgets its watchdog.
type setAction struct {
	Panic    string `json:"panic,omitempty"`
	Watchdog string `json:"watchdog,omitempty"`
}

func (setAction) QMP() (string, json.RawMessage) { return "set-action", nil }

// watched starts the machine of examples/watchdog with a guest.
func watched(t *testing.T, g tinyguest.Guest) (*running, runnerconfig.Config, Directories) {
	t.Helper()
	template, err := os.ReadFile("../../examples/watchdog/machine.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	c := testConfig(t)
	c.Runner.VM.KernelBoot.Kernel, c.Runner.VM.KernelBoot.Initrd = g.Kernel, g.Initrd
	d := testDirs(t)
	return start(t, c, d, func(o *Options) { o.Template = string(template) }), c, d
}

// executes reports whether the guest runs.
func executes(s State) bool {
	return !s.Paused && condition(s, live.GuestExecuting).Status == live.True
}

// stoppedFor reports whether the guest is paused for a reason.
func stoppedFor(reason string) func(State) bool {
	return func(s State) bool {
		c := condition(s, live.GuestExecuting)
		return s.Paused && c.Status == live.False && c.Reason == reason
	}
}

// A guest whose kernel really panics is paused and said to be, until it is resumed
// or reset, and where QEMU is to end then, the outcome has the cause.
func TestGuestPanics(t *testing.T) {
	t.Parallel()
	r, c, d := watched(t, testGuest(t))
	console := r.console(t)
	crash := func() {
		t.Helper()
		if err := console.Send("crash"); err != nil {
			t.Fatal(err)
		}
	}
	ready := func() {
		t.Helper()
		if err := console.WaitReady(withPatience(t)); err != nil {
			t.Fatal(err)
		}
	}

	crash()
	// That the guest is paused is asked for, and may be known before QEMU tells why.
	panicked := func(times int) func(State) bool {
		return func(s State) bool { return s.GuestPanics == times && stoppedFor(live.ReasonGuestPanicked)(s) }
	}
	if s := r.now(t, "the panic is seen", panicked(1)); s.Phase != PhaseBooting {
		t.Errorf("phase %s", s.Phase)
	}
	r.told(t, "the guest panicked, action pause")
	if events := r.eventsOf(live.ActionGuest); len(events) != 1 || events[0] != live.ReasonGuestPanicked {
		t.Errorf("events %q", events)
	}
	r.Resume()
	ready() // the kernel goes on with its panic, which is to restart
	r.now(t, "the guest executes again", executes)

	crash()
	r.now(t, "the second panic is seen", panicked(2))
	one := int64(1)
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.ResetCounter = &one })
	ready()
	r.now(t, "the reset guest executes", executes)

	if err := do(withPatience(t), r.tools(t), setAction{Panic: "shutdown"}); err != nil {
		t.Fatal(err)
	}
	crash()
	outcome, err := r.wait(t)
	if err == nil || outcome.Cause != CauseGuestPanic || outcome.Orderly || !strings.Contains(outcome.Message, "panicked") {
		t.Errorf("%+v, %v", outcome, err)
	}
	if n := r.State().GuestPanics; n != 3 {
		t.Errorf("%d panics of a machine that has ended by the third", n)
	}
	nothingLeft(t, d)
}

// The panics of a guest that goes on are counted, too, and told once; with QEMU's own
// action, the machine ends.
func TestGuestOutlivesPanics(t *testing.T) {
	t.Parallel()
	for _, device := range limits.PanicDevices() {
		t.Run(device, func(t *testing.T) {
			t.Parallel()
			c, d := testConfig(t), testDirs(t)
			c.Runner.VM.PanicDevice = device
			r := start(t, c, d)
			console := r.console(t)
			tools := r.tools(t) // a monitor has one client at a time
			if err := do(withPatience(t), tools, setAction{Panic: "none"}); err != nil {
				t.Fatal(err)
			}
			for n := 1; n <= 3; n++ {
				if n == 3 {
					if err := do(withPatience(t), tools, setAction{Panic: "shutdown"}); err != nil {
						t.Fatal(err)
					}
				}
				if err := console.Send("crash"); err != nil {
					t.Fatal(err)
				}
				r.now(t, "the panic is counted", func(s State) bool { return s.GuestPanics == n })
				if n == 3 {
					break
				}
				if err := console.WaitReady(withPatience(t)); err != nil {
					t.Fatal(err)
				}
				r.now(t, "the guest executes", executes)
			}
			outcome, err := r.wait(t)
			if err == nil || outcome.Cause != CauseGuestPanic {
				t.Errorf("%+v, %v", outcome, err)
			}
			r.told(t, "the guest panicked, action run")
			if events := r.eventsOf(live.ActionGuest); len(events) != 1 || events[0] != live.ReasonGuestPanicked {
				t.Errorf("events %q", events)
			}
			if s := r.State(); s.Phase != PhaseStopped || s.GuestPanics != 3 {
				t.Errorf("phase %s, %d panics", s.Phase, s.GuestPanics)
			}
			nothingLeft(t, d)
		})
	}
}

// A guest that has stopped to serve a real watchdog is reset, or paused where QEMU
// is told so, and goes on when it is resumed.
func TestGuestForgetsWatchdog(t *testing.T) {
	t.Parallel()
	r, _, d := watched(t, testbin.GenericTinyGuest(t)) // the other kernel has no driver
	console := r.console(t)
	forget := func() { // the guest may be gone before it has answered
		t.Helper()
		if err := console.Send("watchdog 1"); err != nil {
			t.Fatal(err)
		}
	}
	forget()
	if err := console.WaitReady(withPatience(t)); err != nil {
		t.Fatal(err)
	}
	r.now(t, "the reset guest executes", executes)
	r.told(t, "has not served its watchdog, action reset")
	r.told(t, "the machine was reset")

	if err := do(withPatience(t), r.tools(t), setAction{Watchdog: "pause"}); err != nil {
		t.Fatal(err)
	}
	forget()
	r.now(t, "the pause is seen", stoppedFor(live.ReasonWatchdog))
	r.told(t, "has not served its watchdog, action pause")
	r.Resume()
	r.now(t, "the guest executes again", executes)
	if got := command(t, console, "echo still here"); got != "still here" {
		t.Errorf("the guest says %q", got)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}
