package runner

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const pressed = "the power button was pressed"

// A timeout that is changed while the machine runs counts when it ends.
func TestTimeoutChangedWhileRunning(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t, tinyguest.WordIgnorePowerButton)
	*c.Runner.VM.PowerdownTimeout = 3600
	r := start(t, c, d)
	r.console(t)
	short := int64(2)
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.PowerdownTimeout = &short })
	if s := r.now(t, "the configuration is taken", func(State) bool { return true }); s.PowerdownTimeout != short {
		t.Errorf("the timeout is %d", s.PowerdownTimeout)
	}
	r.Stop()
	if o, err := r.wait(t); err == nil || o.Cause != CauseForced {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}

// A guest that needs longer gets it, also when that is said while it is waited
// for. All other changes come too late then.
func TestTimeoutLengthenedWhileWaiting(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t, tinyguest.WordIgnorePowerButton)
	c.Runner.VM.MaximumCPUs = 2
	*c.Runner.VM.PowerdownTimeout = 6 // QEMU would be told to quit before it is pressed again
	r := start(t, c, d)
	console := r.console(t)
	client := r.tools(t)
	r.Stop()
	r.until(t, "the power button is pressed", func(s State) bool { return strings.Contains(s.Message, pressed) })
	long := int64(3600)
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.PowerdownTimeout, r.VM.CurrentCPUs = &long, 2 })
	times := 0
	r.until(t, "it is pressed again", func(s State) bool {
		if strings.Contains(s.Message, pressed) {
			times++
		}
		return times > 2 // the new configuration is reported with the same message
	})
	if cpus, err := qmp.Do(t.Context(), client, qmp.QueryCPUsFast{}); err != nil || len(cpus) != 1 {
		t.Errorf("%d CPUs, %v", len(cpus), err)
	}
	if err := console.Send("poweroff"); err != nil {
		t.Fatal(err)
	}
	if o, err := r.wait(t); err != nil || o.Cause != CauseRequested {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}

// Whoever does not want to wait for a guest any more need not, however much time it
// was given, and however often that is said; a longer time comes too late.
func TestHurry(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t, tinyguest.WordIgnorePowerButton)
	*c.Runner.VM.PowerdownTimeout = 3600
	r := start(t, c, d)
	r.console(t)
	r.Stop()
	r.until(t, "the power button is pressed", func(s State) bool { return strings.Contains(s.Message, pressed) })
	r.Hurry(7200, false)
	r.Hurry(1800, false)
	if s := r.State(); s.PowerdownTimeout != 1800 {
		t.Errorf("the guest has %d seconds", s.PowerdownTimeout)
	}
	r.Hurry(1800, true)
	r.Hurry(1800, true)
	if o, err := r.wait(t); err == nil || o.Cause != CauseForced {
		t.Errorf("outcome %+v, %v", o, err)
	}
	nothingLeft(t, d)
}
