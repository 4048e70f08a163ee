package runner

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

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
	config.Runner.VM = runnerconfig.VM{Name: "x", MaximumCPUs: slots, CurrentCPUs: 1}
	f := &follower{client: c, e: &Engine{}, machine: live.Machine{Started: &config}}
	rounds := int64(0)
	// plug is the step by which the machine comes nearer to that many processors; nil where
	// there is none, and what QEMU says of its cache.
	plug := func(cpus int) (*live.PlugCPU, string) {
		t.Helper()
		config.Runner.VM.CurrentCPUs = cpus
		o, err := f.observe(ctx, desired{config: config})
		if err != nil {
			t.Fatal(err)
		}
		rounds++
		out := live.Decide(live.Input{Config: &config, Generation: 1, Machine: f.machine, Observed: o, Now: time.Unix(rounds*3600, 0)})
		for _, s := range out.Steps {
			if p, is := s.(live.PlugCPU); is {
				return &p, o.Translation
			}
		}
		return nil, o.Translation
	}
	// How fast the firmware fills the cache is the machine's affair.
	for step, _ := plug(slots); step != nil; step, _ = plug(slots) {
		select {
		case <-ctx.Done():
			t.Fatal("the firmware leaves room in the cache for the code of all processors")
		case <-time.After(100 * time.Millisecond):
		}
	}
	plugged := 0
	for plugged < slots-1 {
		step, translation := plug(plugged + 2)
		if step == nil {
			t.Logf("%d CPUs were plugged; %s", plugged, translation)
			break
		}
		if err := f.execute(ctx, *step); err != nil {
			t.Fatalf("after %d plugged CPUs: %v", plugged, err)
		}
		plugged++
		time.Sleep(300 * time.Millisecond)
	}
	if _, err := answer(ctx, c, qmp.QueryStatus{}); err != nil {
		t.Error(err)
	}
}
