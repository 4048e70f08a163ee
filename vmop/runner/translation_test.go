package runner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// A QEMU whose firmware has filled a small cache for translated code gets as many CPUs as
// there is room for, and survives that.
func TestPluggedCPUsHaveRoomForTheirCode(t *testing.T) {
	const slots = 8
	firmware := qemucmd.GenericHost().Firmware[0].Code
	socket := filepath.Join(t.TempDir(), "qmp")
	cmd := exec.CommandContext(t.Context(), "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-m", "128",
		"-accel", "tcg,thread=multi,tb-size=8", "-smp", "1,maxcpus="+strconv.Itoa(slots), "-qmp", "unix:"+socket+",server=on,wait=off",
		"-drive", "if=pflash,format=raw,readonly=on,file="+firmware)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var c *qmp.Client
	for {
		var err error
		if c, err = qmp.Dial(ctx, socket, qmp.Options{}); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	defer func() { _ = c.Close() }()

	config := runnerconfig.Config{}
	config.Runner.VM = runnerconfig.VM{Name: "x", MaximumCPUs: slots, CurrentCPUs: slots}
	f := &follower{client: c, e: &Engine{}, machine: live.Machine{Started: &config}}
	rounds := int64(0)
	// look is what the follower decides on, and what QEMU says of its cache.
	look := func() (live.Decision, string) {
		t.Helper()
		o, err := f.observe(ctx, desired{config: config})
		if err != nil {
			t.Fatal(err)
		}
		rounds++
		return live.Decide(live.Input{Config: &config, Generation: 1, Machine: f.machine, Observed: o, Now: time.Unix(rounds*3600, 0)}), o.Translation
	}
	// lacksRoom says that the firmware has filled a region.
	lacksRoom := func(d live.Decision) bool {
		return slices.ContainsFunc(d.Conditions, func(c live.Condition) bool {
			return c.Type == live.CPUsAdjusted && c.Reason == live.ReasonChangesWait && !strings.Contains(c.Message, fmt.Sprintf("more than %d ", slots-1))
		})
	}
	// How fast the firmware fills the cache is the machine's affair.
	d, translation := look()
	for !lacksRoom(d) {
		select {
		case <-ctx.Done():
			t.Fatal("the firmware leaves room in the cache for the code of all processors")
		case <-time.After(100 * time.Millisecond):
		}
		d, translation = look()
	}
	plugged := 0
	for {
		i := slices.IndexFunc(d.Steps, func(s live.Step) bool { _, is := s.(live.PlugCPU); return is })
		if i < 0 {
			break
		}
		if err := f.execute(ctx, d.Steps[i]); err != nil {
			t.Fatalf("after %d plugged CPUs: %v", plugged, err)
		}
		plugged++
		d, translation = look()
	}
	t.Logf("%d CPUs were plugged; %s", plugged, translation)
	if _, err := answer(ctx, c, qmp.QueryStatus{}); err != nil {
		t.Error(err)
	}
}

// A kernel that changes its own code is emulated as it is then, also by other CPUs than the one that
// changes it. With a thread per CPU, QEMU 7.2 and 10.0 have such a guest hang within seconds.
func TestGuestThatChangesItsCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "selfpatching"), "./testdata/selfpatching")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "selfpatching"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := testGuest(t).WithFiles(dir, tinyguest.File{Name: "/bin/selfpatching", Mode: 0o755, Data: program})
	if err != nil {
		t.Fatal(err)
	}
	c := testConfig(t)
	c.Runner.VM.KernelBoot.Initrd, c.Runner.VM.MaximumCPUs, c.Runner.VM.CurrentCPUs = g.Initrd, 2, 1
	r := start(t, c, testDirs(t))
	console := r.console(t)
	r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentCPUs = 2 })
	expect(t, console, "vmop-guest: cpu 1 online")
	if err := console.Send("exec /bin/selfpatching"); err != nil {
		t.Fatal(err)
	}
	expect(t, console, "patched ")
}
