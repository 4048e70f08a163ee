package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// soakEnv makes the soak last as long as it says, such as "5m".
const soakEnv = "VMOP_SOAK"

// shortSoak is what every test run does.
const shortSoak = 16

// soakCPUs is the room for CPUs. Each is plugged once: machines of software
// emulation keep them.
const soakCPUs = 4

// soakChange is one random change.
type soakChange struct {
	cpus     int // wanted
	ram      int64
	medium   int // of the images; 0 is none
	password string
	expiry   string
	reset    bool
	pause    bool
}

// soakChanges desire up to so many CPUs. Changes to fewer than there are come as
// often as others, and have no effect in a machine without KVM.
func soakChanges(cpus int) *rapid.Generator[soakChange] {
	return rapid.Custom(func(t *rapid.T) soakChange {
		return soakChange{
			cpus:     cpus - rapid.IntRange(0, cpus-1).Draw(t, "fewer CPUs"),
			ram:      rapid.SampledFrom([]int64{0, 80, 96, 112}).Draw(t, "RAM") << 20,
			medium:   rapid.IntRange(0, 2).Draw(t, "medium"),
			password: rapid.StringMatching(`[a-z]{1,20}`).Draw(t, "password"),
			expiry:   rapid.SampledFrom([]string{"", "now", "never", "+60"}).Draw(t, "expiry"),
			reset:    rapid.SampledFrom([]bool{false, false, true}).Draw(t, "reset"),
			pause:    rapid.IntRange(0, 4).Draw(t, "pause") == 0,
		}
	})
}

// soak says how far a soak is.
type soak struct {
	begin, end time.Time // both zero in a short one
	n          int
}

func newSoak(t *testing.T) *soak {
	v := os.Getenv(soakEnv)
	if v == "" {
		return &soak{}
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatalf("%s: %v", soakEnv, err)
	}
	now := time.Now()
	return &soak{begin: now, end: now.Add(d)}
}

// done is how much of the soak has passed, 1 is all of it.
func (s *soak) done() float64 {
	done := float64(s.n) / shortSoak
	if all := s.end.Sub(s.begin); all > 0 {
		done = min(done, float64(time.Since(s.begin))/float64(all))
	}
	return done
}

// One machine under random valid changes: after each it is as wanted, by what
// QEMU and the guest say, and nothing grows.
func TestSoak(t *testing.T) {
	d := testDirs(t)
	c := testConfig(t)
	secret, images := t.TempDir(), t.TempDir()
	put(t, filepath.Join(secret, "display-password"), "first")
	media := []string{"", filepath.Join(images, "one"), filepath.Join(images, "two")}
	for _, m := range media[1:] {
		put(t, m, string(make([]byte, 1<<20)))
	}
	vm := &c.Runner.VM
	vm.MaximumCPUs, vm.CurrentCPUs = soakCPUs, 1
	vm.Drives = []runnerconfig.Drive{{Type: "ide-cd"}}
	vm.Display = &runnerconfig.Display{SPICE: &runnerconfig.SPICE{Socket: filepath.Join(d.Runtime, qemucmd.SocketSPICE.FileName())}}
	runnerconfig.Default(&c)
	r := start(t, c, d, func(o *Options) { o.DisplaySecretDir = secret })
	console := r.console(t)
	client := r.tools(t)

	s := newSoak(t)
	var first footprint
	var counter int64
	plugged := 1
	done := map[string]int{}
	for ; s.done() < 1; s.n++ {
		if s.n == 4 {
			first = r.footprint(t, client)
		}
		// The CPUs come in the course of the soak, and not all at its beginning.
		change := soakChanges(min(2+int((soakCPUs-1)*s.done()), soakCPUs)).Example(s.n)
		put(t, filepath.Join(secret, "display-password"), change.password)
		put(t, filepath.Join(secret, "password-expiry"), change.expiry)
		if change.reset {
			counter++
			done["resets"]++
		}
		r.log.forgetMessages()
		r.rereadDisplaySecret()
		r.reconfigure(t, &c, func(r *runnerconfig.Runner) {
			if change.cpus < plugged {
				done["fewer CPUs desired"]++
			}
			done["CPUs added"] += max(change.cpus-plugged, 0)
			plugged = max(plugged, change.cpus)
			r.VM.CurrentCPUs = change.cpus
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
			return s.CPUs == plugged && live.BalloonReached(s.RAM, live.BalloonTarget(&wanted, 128<<20)) && !slices.ContainsFunc(s.Conditions, func(c live.Condition) bool {
				fewer := plugged > wanted.Runner.VM.CurrentCPUs
				switch c.Type {
				case live.RestartRequired:
					return fewer != (c.Status == live.True)
				case live.CPUsAdjusted:
					return fewer != (c.Reason == live.ReasonChangesWait) || !fewer && c.Status == live.False
				}
				return c.Status == live.False
			})
		})
		soakCompare(t, client, &c, plugged, media[change.medium])
		if change.pause {
			done["pauses"]++
			r.Pause()
			r.now(t, "paused", func(s State) bool { return s.Paused })
			r.Resume()
			r.now(t, "resumed", func(s State) bool { return !s.Paused })
		}
		// The guest needs a moment for a CPU that was plugged.
		for patient := withPatience(t); ; {
			got := command(t, console, "cpus")
			if onlineCPUs(t, got) == plugged {
				break
			}
			if patient.Err() != nil {
				t.Fatalf("the guest's CPUs: %s; want %d", got, plugged)
			}
		}
	}
	last := r.footprint(t, client)
	t.Logf("%d changes, of them %v; from %v to %v", s.n, done, first, last)
	last.compare(t, first)
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}

// footprint is what a runner, together with this test, and its QEMU hold.
type footprint struct {
	goroutines, files, qemuFiles, nodes int
	heap, rss, qemuRSS                  int64
}

func (r *running) footprint(t *testing.T, client *qmp.Client) footprint {
	t.Helper()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	nodes, files := r.held(t, client)
	return footprint{
		goroutines: runtime.NumGoroutine(), files: openFiles(t), qemuFiles: len(files), nodes: len(nodes),
		heap: int64(m.HeapAlloc), rss: residentSet(t, os.Getpid()), qemuRSS: residentSet(t, r.State().QEMUPID),
	}
}

func (f footprint) String() string {
	return fmt.Sprintf("{%d goroutines, %d files, heap %s, resident %s; QEMU: %d files, %d block nodes, resident %s}",
		f.goroutines, f.files, mebibytes(f.heap), mebibytes(f.rss), f.qemuFiles, f.nodes, mebibytes(f.qemuRSS))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// What a machine may take in addition, whatever is done to it.
const (
	// translationCache is what qemucmd gives TCG, in bytes.
	translationCache = 128 << 20
	// heapSlack and rssSlack are for what the garbage collector and the allocator
	// keep; the test's own buffers are in it.
	heapSlack, rssSlack = 2 << 20, 16 << 20
	// qemuMemory bounds QEMU's own memory: without the guest's and without that of
	// translated code.
	qemuMemory = 160 << 20
)

func (f footprint) compare(t *testing.T, before footprint) {
	t.Helper()
	// The medium that is in the drive or not makes a difference of two nodes and of two
	// descriptors, the one that QEMU was given and its copy.
	if f.goroutines > before.goroutines || f.files > before.files || f.qemuFiles > before.qemuFiles+2 || f.nodes > 2 {
		t.Errorf("%v became %v", before, f)
	}
	if f.heap > before.heap+heapSlack || f.rss > before.rss+rssSlack {
		t.Errorf("the runner grew: %v became %v", before, f)
	}
	if most := int64(128<<20 + translationCache + qemuMemory); f.qemuRSS > most {
		t.Errorf("QEMU takes %s, more than %s", mebibytes(f.qemuRSS), mebibytes(most))
	}
}

// onlineCPUs counts the processors of a list such as "online 0-1,3".
func onlineCPUs(t *testing.T, list string) int {
	t.Helper()
	line, _, _ := strings.Cut(list, "\n")
	n := 0
	for part := range strings.SplitSeq(strings.TrimPrefix(line, "online "), ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			t.Fatalf("no list of CPUs: %q", list)
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(to); err != nil {
				t.Fatalf("no list of CPUs: %q", list)
			}
		}
		n += b - a + 1
	}
	return n
}

// residentSet is the memory of a process in bytes.
func residentSet(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// soakCompare compares the model, which is the configuration with the CPUs that
// were plugged, with QEMU.
func soakCompare(t *testing.T, client *qmp.Client, c *runnerconfig.Config, plugged int, medium string) {
	t.Helper()
	cpus, err := qmp.Do(t.Context(), client, qmp.QueryCPUsFast{})
	if err != nil || len(cpus) != plugged {
		t.Fatalf("%d CPUs, %v; want %d", len(cpus), err, plugged)
	}
	balloon, err := qmp.Do(t.Context(), client, qmp.QueryBalloon{})
	if target := live.BalloonTarget(c, 128<<20); err != nil || !live.BalloonReached(balloon.Actual, target) {
		t.Fatalf("the guest has %d, %v; want %d", balloon.Actual, err, target)
	}
	blocks, err := qmp.Do(t.Context(), client, qmp.QueryBlock{})
	if err != nil {
		t.Fatal(err)
	}
	sets, err := qmp.Do(t.Context(), client, qmp.QueryFDSets{})
	if err != nil {
		t.Fatal(err)
	}
	opened := map[string]string{"": ""}
	for _, s := range sets {
		opened[qemucmd.FDSetName(s.ID)] = s.FDs[0].Opaque
	}
	for _, b := range blocks {
		if d, ok := cdDrive(b); ok && opened[d.Medium] != medium {
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
