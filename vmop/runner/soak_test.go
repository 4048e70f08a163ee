package runner

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/reconcile/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// soakEnv makes the soak last as long as it says, such as "5m".
const soakEnv = "VMOP_SOAK"

// shortSoak is what every test run does.
const shortSoak = 12

// soakChange is one random change. CPUs are only added: QEMU 7.2 without KVM
// frees the memory of a removed CPU twice.
type soakChange struct {
	moreCPUs bool
	ram      int64
	medium   int // of the images; 0 is none
	password string
	expiry   string
	reset    bool
	pause    bool
}

var soakChanges = rapid.Custom(func(t *rapid.T) soakChange {
	return soakChange{
		moreCPUs: rapid.IntRange(0, 9).Draw(t, "CPUs") == 0,
		ram:      rapid.SampledFrom([]int64{0, 80, 96, 112}).Draw(t, "RAM") << 20,
		medium:   rapid.IntRange(0, 2).Draw(t, "medium"),
		password: rapid.StringMatching(`[a-z]{1,20}`).Draw(t, "password"),
		expiry:   rapid.SampledFrom([]string{"", "now", "never", "+60"}).Draw(t, "expiry"),
		reset:    rapid.IntRange(0, 9).Draw(t, "reset") == 0,
		pause:    rapid.IntRange(0, 4).Draw(t, "pause") == 0,
	}
})

// One machine under random valid changes: after each it is as wanted, by what
// QEMU says, and nothing grows.
func TestSoak(t *testing.T) {
	var end time.Time
	if v := os.Getenv(soakEnv); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatalf("%s: %v", soakEnv, err)
		}
		end = time.Now().Add(d)
	}
	d := testDirs(t)
	c := testConfig(t)
	secret, images := t.TempDir(), t.TempDir()
	put(t, filepath.Join(secret, "display-password"), "first")
	media := []string{"", filepath.Join(images, "one"), filepath.Join(images, "two")}
	for _, m := range media[1:] {
		put(t, m, string(make([]byte, 1<<20)))
	}
	vm := &c.Runner.VM
	vm.MaximumCPUs, vm.CurrentCPUs = 4, 1
	vm.Drives = []runnerconfig.Drive{{Type: "ide-cd"}}
	vm.Display = &runnerconfig.Display{SPICE: &runnerconfig.SPICE{Socket: filepath.Join(d.Runtime, runnerconfig.SPICESocket)}}
	runnerconfig.Default(&c)
	r := start(t, c, d, func(o *Options) { o.DisplaySecretDir = secret })
	console := r.console(t)
	client, err := qmp.Dial(t.Context(), r.State().Sockets[string(qemucmd.SocketToolMonitor)], qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()

	var goroutines, files int
	var counter int64
	for n := 0; n < shortSoak || time.Now().Before(end); n++ {
		change := soakChanges.Example(n)
		if n == 2 {
			goroutines, files = runtime.NumGoroutine(), openFiles(t)
		}
		put(t, filepath.Join(secret, "display-password"), change.password)
		put(t, filepath.Join(secret, "password-expiry"), change.expiry)
		if change.reset {
			counter++
		}
		r.RereadDisplaySecret()
		r.reconfigure(t, &c, func(r *runnerconfig.Runner) {
			if change.moreCPUs && r.VM.CurrentCPUs < 4 {
				r.VM.CurrentCPUs++
			}
			r.VM.CurrentRAM = runnerconfig.Bytes(change.ram)
			r.VM.Drives = []runnerconfig.Drive{{Type: "ide-cd", File: media[change.medium]}}
			count := counter
			r.ResetCounter = &count
		})
		if change.reset {
			expect(t, console, tinyguest.Ready)
		}
		wanted := c
		r.now(t, "everything is as wanted", func(s State) bool {
			return s.CPUs == wanted.Runner.VM.CurrentCPUs && live.BalloonReached(s.RAM, live.BalloonTarget(&wanted, 128<<20)) && !slices.ContainsFunc(s.Conditions, func(c live.Condition) bool {
				return c.Status == live.False && c.Type != live.RestartRequired
			})
		})
		soakCompare(t, client, &c, media[change.medium])
		if change.pause {
			r.Pause()
			r.now(t, "paused", func(s State) bool { return s.Paused })
			r.Resume()
			r.now(t, "resumed", func(s State) bool { return !s.Paused })
		}
	}
	if g, f := runtime.NumGoroutine(), openFiles(t); g > goroutines || f > files {
		t.Errorf("%d goroutines and %d files became %d and %d", goroutines, files, g, f)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// soakCompare compares the model, which is the configuration, with QEMU.
func soakCompare(t *testing.T, client *qmp.Client, c *runnerconfig.Config, medium string) {
	t.Helper()
	cpus, err := qmp.Do(t.Context(), client, qmp.QueryCPUsFast{})
	if err != nil || len(cpus) != c.Runner.VM.CurrentCPUs {
		t.Fatalf("%d CPUs, %v; want %d", len(cpus), err, c.Runner.VM.CurrentCPUs)
	}
	balloon, err := qmp.Do(t.Context(), client, qmp.QueryBalloon{})
	if target := live.BalloonTarget(c, 128<<20); err != nil || !live.BalloonReached(balloon.Actual, target) {
		t.Fatalf("the guest has %d, %v; want %d", balloon.Actual, err, target)
	}
	blocks, err := qmp.Do(t.Context(), client, qmp.QueryBlock{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if d, ok := cdDrive(b); ok && d.Medium != medium {
			t.Fatalf("%s holds %q, want %q", d.ID, d.Medium, medium)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
