package live_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/live"
)

// A password counts once, and not before each protocol has it.
func TestPasswordCountsOnce(t *testing.T) {
	m := live.Start(config(1, 0, 0))
	set := func(protocol, digest, problem string, want int64) {
		t.Helper()
		m = m.Result(live.SetDisplayPassword{Protocol: protocol, Digest: digest}, problem)
		if m.PasswordSerial != want {
			t.Errorf("%s %s %q: serial %d, want %d", protocol, digest, problem, m.PasswordSerial, want)
		}
	}
	set(live.SPICE, "a", "", 0)
	set(live.VNC, "a", "refused", 0)
	set(live.VNC, "a", "", 1)
	set(live.VNC, "a", "", 1)
	set(live.VNC, "b", "", 1)
	set(live.SPICE, "b", "", 2)
}

// Only with VNC is a long password worth a word.
func TestLongPassword(t *testing.T) {
	c := config(1, 0, 0)
	for _, want := range []string{"the password is longer than the 8 bytes that VNC compares", ""} {
		memory := live.Start(c)
		for _, p := range live.DisplayProtocols(c) {
			memory = memory.Result(live.SetDisplayPassword{Protocol: p, Digest: "x"}, "")
		}
		d := live.Decide(live.Input{
			Config: c, Machine: live.Machine{Started: c, RAM: ram, Ticketing: true}, Memory: memory,
			Display: live.DisplaySecret{Password: "x", Long: true}, Observed: live.Observed{RunState: "running"},
		})
		if got := d.Conditions[3]; got.Status != live.True || got.Message != want {
			t.Errorf("%+v, want %q", got, want)
		}
		c.Runner.VM.Display.VNC = nil
	}
}
