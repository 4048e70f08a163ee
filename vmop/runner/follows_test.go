package runner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// fast lets the time pass faster in which a guest may follow. What it does is
// waited for in real time.
func fast(o *Options) { o.clock = clock{begin: time.Now(), speed: 100} }

// memTotal is the memory in bytes that the guest's kernel manages.
func memTotal(t *testing.T, c *tinyguest.Console) int64 {
	t.Helper()
	out := command(t, c, "mem")
	var kb int64
	if _, err := fmt.Sscanf(out, "MemTotal %d kB", &kb); err != nil {
		t.Fatalf("mem: %s: %v", out, err)
	}
	return kb << 10
}

// The memory is what the guest has, seen from inside, and the balloon returns by
// itself what the guest does not use.
func TestBalloonSeenFromInside(t *testing.T) {
	t.Parallel() // with others that boot for long
	d := testDirs(t)
	c := testConfig(t)
	r := start(t, c, d)
	console := r.console(t)
	full := memTotal(t, console)
	for _, ram := range []int64{96 << 20, 80 << 20, 112 << 20, 0} {
		r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentRAM = runnerconfig.Bytes(ram) })
		target := live.BalloonTarget(&c, 128<<20)
		r.now(t, "the balloon", func(s State) bool {
			return s.RAM == target && condition(s, live.MemoryAdjusted).Status == live.True
		})
		if got, want := memTotal(t, console), full-(128<<20-target); got-want > 1<<20 || want-got > 1<<20 {
			t.Errorf("the guest has %d of %d KiB, want %d", got>>10, full>>10, want>>10)
		}
	}
	client := r.tools(t)
	raw, err := qmp.Do(t.Context(), client, qmp.QOMGet{Path: qemucmd.DevicePath(qemucmd.BalloonID), Property: "free-page-reporting"})
	if err != nil || string(raw) != "true" {
		t.Errorf("free page reporting is %s, %v", raw, err)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// A guest without a driver for the balloon keeps its memory, and so does one that
// does not execute; that is said, and holds nothing else back.
func TestGuestWithoutBalloonDriver(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t, "module_blacklist=virtio_balloon")
	c.Runner.VM.MaximumCPUs, c.Runner.VM.CurrentRAM = 2, 96<<20
	r := start(t, c, d, fast)
	console := r.console(t)
	full := memTotal(t, console)
	s := r.now(t, "it is given up", reason(live.MemoryAdjusted, live.ReasonGuestDoesNotFollow))
	if got := condition(s, live.MemoryAdjusted); !strings.HasSuffix(got.Message, "it has no balloon driver") || s.RAM != 128<<20 {
		t.Errorf("%+v, memory %d", got, s.RAM)
	}
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentCPUs = 2 })
	r.now(t, "two CPUs", func(s State) bool { return s.CPUs == 2 && condition(s, live.CPUsAdjusted).Status == live.True })
	expect(t, console, "vmop-guest: cpu 1 online")
	if got := memTotal(t, console); got != full {
		t.Errorf("the guest has %d of %d", got, full)
	}
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentRAM = 0 })
	r.now(t, "the change is taken back", func(s State) bool { return condition(s, live.MemoryAdjusted).Status == live.True })
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// A guest without ACPI hears nothing of CPUs that come and go. It is asked a few
// times to release one; meanwhile, and afterwards, the rest is changed.
func TestGuestThatReleasesNoCPU(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	c := testConfig(t, "acpi=off")
	c.Runner.VM.MaximumCPUs, c.Runner.VM.CurrentCPUs = 3, 3
	r := start(t, c, d)
	console := r.console(t)
	client := r.tools(t)
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentCPUs, r.VM.CurrentRAM = 1, 96<<20 })
	r.now(t, "the balloon", func(s State) bool { return s.RAM == 96<<20 })
	var o Options
	fast(&o)
	got := r.asWithKVM(t, client, c, o.clock, func(c live.Condition) bool { return c.Reason == live.ReasonGuestDoesNotFollow })
	if !strings.HasPrefix(got.Message, "there are 3 CPUs, 1 are wanted") {
		t.Errorf("%+v", got)
	}
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentRAM = 112 << 20 })
	r.now(t, "the balloon again", func(s State) bool { return s.RAM == 112<<20 })
	// The boot processor was not touched: the guest lives.
	if got := command(t, console, "echo here"); !strings.Contains(got, "here") {
		t.Error(got)
	}
	cpus, err := qmp.Do(t.Context(), client, qmp.QueryCPUsFast{})
	if err != nil || len(cpus) != 3 {
		t.Errorf("%d CPUs, %v", len(cpus), err)
	}
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentCPUs = 3 })
	r.now(t, "the change is taken back", func(s State) bool { return condition(s, live.CPUsAdjusted).Status == live.True })
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}
