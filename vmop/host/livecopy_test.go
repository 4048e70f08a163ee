package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qga/qgatest"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// copyingQEMU is a QEMU whose disks can have overlays, and what it was asked.
type copyingQEMU struct {
	mu      sync.Mutex
	t       *testing.T
	paths   map[string]string // of disks, by their nodes
	nodes   []string
	active  map[string]string // the overlays of disks, by their nodes
	jobs    map[string]*qmp.Job
	sizes   map[string]int64 // of nodes, in bytes
	running bool
	agent   bool
	log     []string // what was done to the guest
	// fails, if not nil, answers in QEMU's place, with mu locked.
	fails func(c *qmptest.Call) bool
}

func (q *copyingQEMU) note(what string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.log = append(q.log, what)
}

// sync keeps a test and QEMU apart.
func (q *copyingQEMU) sync(do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	do()
}

// phase is what the journal says at this moment.
func (q *copyingQEMU) phase() overlay.Phase {
	j, err := overlay.Read(filepath.Dir(q.paths[qemucmd.DiskNode(0)]))
	if err != nil {
		q.t.Error(err)
	}
	if j == nil {
		return ""
	}
	return j.Phase
}

// must has a test fail where something is asked in a phase in which it must not be. Disks
// are plugged in no phase of a copy: their nodes are none of its overlays'.
func (q *copyingQEMU) must(c *qmptest.Call, phases ...overlay.Phase) {
	var on struct {
		Node string `json:"node-name"`
	}
	if _ = c.Arguments(&on); on.Node != "" && !strings.HasPrefix(on.Node, strings.TrimSuffix(qemucmd.OverlayNode(0), "0")) {
		return
	}
	if now := q.phase(); !slices.Contains(phases, now) {
		q.t.Errorf("QEMU was asked %s in %q", c.Name(), now)
	}
}

func (q *copyingQEMU) handle(c *qmptest.Call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fails != nil && q.fails(c) {
		return
	}
	var args map[string]any
	_ = c.Arguments(&args) // some have none
	text := func(key string) string { s, _ := args[key].(string); return s }
	switch c.Name() {
	case "query-status":
		state := qmp.RunStatePaused
		if q.running {
			state = "running"
		}
		c.Return(qmp.Status{Running: q.running, Status: state})
		return
	case "query-chardev":
		c.Return([]qmp.ChardevInfo{{Label: qemucmd.GuestAgentChardev, FrontendOpen: q.agent}})
		return
	case "query-fdsets":
		c.Return([]qmp.FDSet{{ID: 0, FDs: []qmp.FDSetFile{{Opaque: q.paths[qemucmd.DiskNode(0)]}}}})
		return
	case "query-named-block-nodes":
		nodes := []qmp.BlockDeviceInfo{
			{NodeName: qemucmd.DiskNode(0), Driver: "raw", File: "/dev/fdset/0", Image: qmp.ImageInfo{VirtualSize: q.sizes[qemucmd.DiskNode(0)]}},
			{NodeName: qemucmd.DiskNode(1), Driver: "raw", File: q.paths[qemucmd.DiskNode(1)], Image: qmp.ImageInfo{VirtualSize: q.sizes[qemucmd.DiskNode(1)]}},
		}
		for _, n := range q.nodes {
			nodes = append(nodes, qmp.BlockDeviceInfo{NodeName: n, Image: qmp.ImageInfo{VirtualSize: q.sizes[n]}})
		}
		c.Return(nodes)
		return
	case "query-block":
		out := []qmp.BlockInfo{{}}
		for i := range 2 {
			node := cmp.Or(q.active[qemucmd.DiskNode(i)], qemucmd.DiskNode(i))
			out = append(out, qmp.BlockInfo{QDev: qemucmd.DiskID(i), Inserted: &qmp.BlockDeviceInfo{NodeName: node}})
		}
		c.Return(out)
		return
	case "query-jobs":
		out := []qmp.Job{}
		for _, id := range slices.Sorted(maps.Keys(q.jobs)) {
			out = append(out, *q.jobs[id])
		}
		c.Return(out)
		return
	case "blockdev-add":
		q.must(c, overlay.Attaching)
		q.nodes = append(q.nodes, text("node-name"))
		if file, overlays := text("file"), strings.TrimSuffix(qemucmd.OverlayNode(0), "0"); strings.HasPrefix(file, overlays) {
			q.sizes[text("node-name")] = madeSizes[strings.TrimPrefix(text("node-name"), overlays)]
		}
	case "block_resize":
		q.must(c, overlay.Attaching)
		q.sizes[text("node-name")] = int64(args["size"].(float64))
		q.log = append(q.log, fmt.Sprintf("%s has %d", text("node-name"), q.sizes[text("node-name")]))
	case "blockdev-del":
		q.must(c, overlay.Making, overlay.Merged)
		i := slices.Index(q.nodes, text("node-name"))
		if stem, file := strings.CutSuffix(text("node-name"), "-file"); i < 0 || file && slices.Contains(q.nodes, stem) || slices.Contains(slices.Collect(maps.Values(q.active)), text("node-name")) {
			c.Fail("GenericError", "Node "+text("node-name")+" is in use")
			return
		}
		q.nodes = slices.Delete(q.nodes, i, i+1)
	case "transaction":
		q.must(c, overlay.Attaching)
		actions, _ := args["actions"].([]any)
		for _, a := range actions {
			data, _ := a.(map[string]any)["data"].(map[string]any)
			q.active[data["node"].(string)] = data["overlay"].(string)
		}
		q.log = append(q.log, fmt.Sprintf("moment of %d", len(actions)))
	case "block-commit":
		q.must(c, overlay.Merging)
		q.jobs[text("job-id")] = &qmp.Job{ID: text("job-id"), Status: qmp.JobReady, Progress: 7, Total: 7}
	case "job-complete":
		q.must(c, overlay.Merging)
		if q.running {
			q.t.Error("the guest executes, and a job completes")
		}
		q.jobs[text("id")].Status = qmp.JobPending
	case "job-finalize":
		q.must(c, overlay.Merged)
		if q.running {
			q.t.Error("the guest executes, and a job is finalized")
		}
		q.jobs[text("id")].Status = qmp.JobConcluded
		over := "vmop-overlay-" + strings.TrimPrefix(text("id"), "vmop-merge-")
		maps.DeleteFunc(q.active, func(_, active string) bool { return active == over })
	case "job-cancel":
		q.must(c, overlay.Merging)
		q.jobs[text("id")].Status = qmp.JobConcluded
	case "job-dismiss":
		delete(q.jobs, text("id"))
	case "stop", "cont":
		q.running = c.Name() == "cont"
		for disk, over := range q.active {
			if q.running && q.sizes[over] < q.sizes[disk] {
				q.t.Errorf("the guest goes on with %d of the %d bytes of %s", q.sizes[over], q.sizes[disk], disk)
			}
		}
		q.log = append(q.log, c.Name())
	default:
		q.t.Errorf("QEMU was asked %s", c.Name())
	}
	c.Return(nil)
}

// madeSizes are the sizes of the bench's disks, and so of the overlays that are made.
var madeSizes = map[string]int64{"0": 64 << 20, "1": 512}

// run has the bench's machine run in a QEMU that copies.
func (b *bench) run(agent map[string]qgatest.Handler) *copyingQEMU {
	b.Helper()
	dir, err := os.MkdirTemp("", "vmop") // a socket's path must be short
	b.ok(err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	q := &copyingQEMU{
		t: b.T, running: true, agent: agent != nil, active: map[string]string{}, jobs: map[string]*qmp.Job{},
		sizes: map[string]int64{qemucmd.DiskNode(0): madeSizes["0"], qemucmd.DiskNode(1): madeSizes["1"]},
		paths: map[string]string{qemucmd.DiskNode(0): filepath.Join(b.m.Data, "system-disk.img"), qemucmd.DiskNode(1): b.external},
	}
	b.m.Runner, b.m.QEMU, b.m.Status, b.m.State.RuntimeDir = os.Getpid(), os.Getpid(), StatusRunning, dir
	b.listen(qemucmd.SocketToolMonitor, func(conn net.Conn) {
		<-qmptest.Start(conn, qmptest.Options{Default: q.handle}).Done()
	})
	for name, h := range agent {
		agent[name] = func(r qgatest.Request) (any, error) { q.note(name); return h(r) }
	}
	b.listen(qemucmd.SocketGuestAgent, func(conn net.Conn) { (&qgatest.Agent{Handlers: agent}).Serve(conn) })
	return q
}

func (b *bench) listen(socket qemucmd.SocketPurpose, serve func(net.Conn)) {
	b.Helper()
	l, err := net.Listen("unix", b.m.Socket(socket))
	b.ok(err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { serve(conn) })
		}
	})
	b.Cleanup(func() { _ = l.Close(); serving.Wait() })
}

var freezes = func(qgatest.Request) (any, error) { return 2, nil }

// All disks are copied at one moment, in which the guest stands still, and it goes on
// whatever happens.
func TestCopyOfRunningMachine(t *testing.T) {
	refuses := func(qgatest.Request) (any, error) { return nil, &qgatest.Error{Class: "GenericError", Desc: "no VSS"} }
	for _, c := range []struct {
		name     string
		agent    map[string]qgatest.Handler
		paused   bool
		log      []string
		frozen   bool
		unfrozen string
	}{
		{"without an agent", nil, false, []string{"stop", "moment of 2", "cont", "stop", "cont"}, false, "it has no guest agent"},
		{"that is paused", nil, true, []string{"moment of 2"}, false, "it was paused"},
		{
			"with an agent", map[string]qgatest.Handler{"guest-fsfreeze-freeze": freezes, "guest-fsfreeze-thaw": freezes}, false,
			[]string{"guest-fsfreeze-freeze", "stop", "moment of 2", "cont", "guest-fsfreeze-thaw", "stop", "cont"}, true, "",
		},
		{"whose agent does not freeze", map[string]qgatest.Handler{}, false, []string{"stop", "moment of 2", "cont", "stop", "cont"}, false, "its agent cannot freeze file systems"},
		{
			"whose agent cannot freeze now", map[string]qgatest.Handler{"guest-fsfreeze-freeze": refuses, "guest-fsfreeze-thaw": freezes}, false,
			[]string{"guest-fsfreeze-freeze", "guest-fsfreeze-thaw", "stop", "moment of 2", "cont", "stop", "cont"}, false, "no VSS",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			q := b.run(c.agent)
			q.sync(func() { q.running = !c.paused })
			b.abandon(filepath.Join(b.m.Data, snapshotsDir, newSnapshotPrefix+"1"))
			b.abandon(filepath.Join(b.m.Data, snapshotsDir, deletedSnapshotPrefix+"old"))
			var done int64
			s, err := b.h.CreateSnapshot(t.Context(), b.m, "live", CopyOptions{Progress: func(n, _ int64) { done = n }})
			b.ok(err)
			q.mu.Lock()
			defer q.mu.Unlock()
			if !slices.Equal(q.log, c.log) || !s.Running || s.Frozen != c.frozen || !strings.Contains(s.Unfrozen, c.unfrozen) || c.unfrozen == "" && s.Unfrozen != "" {
				t.Errorf("%q, %+v", q.log, s)
			}
			if len(q.jobs)+len(q.nodes)+len(q.active) != 0 || q.running == c.paused || done == 0 || exists(filepath.Join(b.m.Data, overlay.Dir)) {
				t.Errorf("jobs %v and nodes %q are left, running: %v, %d copied", q.jobs, q.nodes, q.running, done)
			}
			dir := filepath.Join(b.m.Data, snapshotsDir, "live")
			b.empty(filepath.Dir(dir), "live")
			b.empty(dir, "system-disk.img", "data-claim.img", "machine.json", "manifest.yaml", "definition.json", "fw-vars.uefi.fd", "tpm2-00.permall", snapshotFile)
			if b.begins(filepath.Join(dir, "system-disk.img")) != "system" || b.begins(filepath.Join(dir, "data-claim.img")) != "data" {
				t.Error("the copies are others")
			}
			// What a guest has written to a raw disk is no other format after it was restored.
			b.ok(os.WriteFile(filepath.Join(dir, "system-disk.img"), []byte("QFI\xfb..."), 0o600))
			b.ok(b.h.RestoreSnapshot(t.Context(), b.machine("web"), "live", RestoreOptions{}))
			record, err := os.ReadFile(filepath.Join(b.m.Data, "machine.json"))
			b.ok(err)
			if !strings.Contains(string(record), `"header": "qcow2"`) {
				t.Errorf("%s", record)
			}
		})
	}
}

// An image that grows when its overlay has been made already is not smaller for its guest
// while it is copied.
func TestImageGrowsBeforeTheMoment(t *testing.T) {
	for _, at := range []string{"blockdev-add", "stop", "transaction"} {
		t.Run(at, func(t *testing.T) {
			b := newBench(t)
			q := b.run(nil)
			q.sync(func() {
				q.fails = func(c *qmptest.Call) bool {
					if c.Name() == at {
						q.sizes[qemucmd.DiskNode(0)] = 96 << 20
					}
					return false
				}
			})
			_, err := b.h.CreateSnapshot(t.Context(), b.m, "live", CopyOptions{})
			b.ok(err)
			q.mu.Lock()
			defer q.mu.Unlock()
			want := []string{"stop", "vmop-overlay-0 has 100663296", "moment of 2", "cont", "stop", "cont"}
			if at == "transaction" {
				want[1], want[2] = want[2], want[1]
			}
			if !slices.Equal(q.log, want) {
				t.Errorf("%q, want %q", q.log, want)
			}
		})
	}
}

// Whatever is done next completes a copy whose command was killed in its moment: the
// guest goes on, and is thawed. One that somebody else has paused stays so.
func TestKilledMoment(t *testing.T) {
	frozen := func(qgatest.Request) (any, error) { return qga.FSFrozen, nil }
	for _, c := range []struct {
		name   string
		paused bool // by the copy
		active bool
		size   int64 // of the image
		log    []string
	}{
		{"before it", true, false, 64 << 20, []string{"cont", "guest-fsfreeze-status", "guest-fsfreeze-thaw"}},
		{"after it", true, true, 64 << 20, []string{"cont", "guest-fsfreeze-status", "guest-fsfreeze-thaw"}},
		{"after it, and the image had grown before", true, true, 96 << 20, []string{"vmop-overlay-0 has 100663296", "cont", "guest-fsfreeze-status", "guest-fsfreeze-thaw"}},
		{"of a guest that was paused", false, true, 64 << 20, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			q := b.run(map[string]qgatest.Handler{"guest-fsfreeze-status": frozen, "guest-fsfreeze-thaw": freezes})
			d := overlay.Disk{Name: "system-disk", Image: "system-disk.img", Format: "raw", Node: qemucmd.DiskNode(0), Overlay: "0.qcow2"}
			h, err := overlay.Begin(t.Context(), b.m.Data, []overlay.Disk{d})
			b.ok(err)
			b.ok(h.Make(t.Context(), d, 64<<20))
			h.Paused = c.paused
			b.ok(h.Write(overlay.Attaching))
			b.ok(h.Close())
			q.sync(func() {
				q.running, q.nodes = false, []string{qemucmd.OverlayFileNode(0), qemucmd.OverlayNode(0)}
				q.sizes[qemucmd.OverlayNode(0)], q.sizes[qemucmd.DiskNode(0)] = 64<<20, c.size
				if c.active {
					q.active[qemucmd.DiskNode(0)] = qemucmd.OverlayNode(0)
				}
			})
			if m := b.machine("web"); !m.Unmerged || !strings.Contains(m.Message(), "a copy of its disks was interrupted") {
				t.Errorf("nobody is told of it: %q", m.Message())
			}
			continued, err := b.m.finishCopy(t.Context())
			b.ok(err)
			q.mu.Lock()
			defer q.mu.Unlock()
			if continued != c.paused || q.running != c.paused || !slices.Equal(q.log, c.log) || len(q.jobs)+len(q.nodes)+len(q.active) != 0 || exists(filepath.Join(b.m.Data, overlay.Dir)) {
				t.Errorf("continued %v, %q, %v, %q, %v", continued, q.log, q.jobs, q.nodes, q.active)
			}
			if m := b.machine("web"); m.Unmerged {
				t.Error("it is told of afterwards")
			}
		})
	}
}

// What a copy has frozen that was killed can be thawed.
func TestThaw(t *testing.T) {
	status := func(s qga.FreezeStatus) qgatest.Handler {
		return func(qgatest.Request) (any, error) { return s, nil }
	}
	for _, c := range []struct {
		name   string
		agent  map[string]qgatest.Handler
		log    []string
		thawed bool
	}{
		{"without an agent", nil, nil, false},
		{"whose agent cannot freeze", map[string]qgatest.Handler{}, nil, false},
		{"thawed", map[string]qgatest.Handler{"guest-fsfreeze-status": status(qga.FSThawed), "guest-fsfreeze-thaw": freezes}, []string{"guest-fsfreeze-status"}, false},
		{"frozen", map[string]qgatest.Handler{"guest-fsfreeze-status": status(qga.FSFrozen), "guest-fsfreeze-thaw": freezes}, []string{"guest-fsfreeze-status", "guest-fsfreeze-thaw"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			q := b.run(c.agent)
			thawed, err := b.m.Thaw(t.Context())
			b.ok(err)
			q.mu.Lock()
			defer q.mu.Unlock()
			if thawed != c.thawed || !slices.Equal(q.log, c.log) {
				t.Errorf("%v, %q", thawed, q.log)
			}
		})
	}
}

// A copy that fails leaves the guest running and nothing else.
func TestFailedCopyOfRunningMachine(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails func(q *copyingQEMU) func(*qmptest.Call) bool
		want  string
		log   []string
	}{
		{"the moment", func(q *copyingQEMU) func(*qmptest.Call) bool {
			return func(c *qmptest.Call) bool {
				if c.Name() == "transaction" {
					c.Fail("GenericError", "Node is busy")
				}
				return c.Name() == "transaction"
			}
		}, "Node is busy", []string{"stop", "cont"}},
		{"no room for the merging", func(q *copyingQEMU) func(*qmptest.Call) bool {
			failed := false
			return func(c *qmptest.Call) bool {
				if j := q.jobs["vmop-merge-1"]; c.Name() == "query-jobs" && j != nil && !failed {
					failed = true
					j.Status, j.Error = qmp.JobConcluded, "No space left on device"
				}
				return false
			}
		}, "which the next copy or the next start does: disk \"data-claim\": QEMU: No space left on device", []string{"stop", "moment of 2", "cont"}},
		{"in the last moment", func(q *copyingQEMU) func(*qmptest.Call) bool {
			return func(c *qmptest.Call) bool {
				if c.Name() == "job-finalize" {
					c.Fail("GenericError", "Input/output error")
					return true
				}
				return false
			}
		}, "Input/output error", []string{"stop", "moment of 2", "cont", "stop", "cont"}},
		{"QEMU ends", func(*copyingQEMU) func(*qmptest.Call) bool {
			return func(c *qmptest.Call) bool {
				if c.Name() == "block-commit" {
					c.Server.Hangup()
				}
				return c.Name() == "block-commit"
			}
		}, "the machine has ended meanwhile", []string{"stop", "moment of 2", "cont"}},
		{"QEMU cannot", func(*copyingQEMU) func(*qmptest.Call) bool {
			return func(c *qmptest.Call) bool {
				if c.Name() == "blockdev-add" {
					c.Fail("GenericError", "Failed to open it")
				}
				return c.Name() == "blockdev-add"
			}
		}, `disk "system-disk": qmp: blockdev-add: Failed to open it`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			q := b.run(nil)
			q.sync(func() { q.fails = c.fails(q) })
			_, err := b.h.CreateSnapshot(t.Context(), b.m, "live", CopyOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			q.mu.Lock()
			defer q.mu.Unlock()
			if !slices.Equal(q.log, c.log) || !q.running {
				t.Errorf("%q, running: %v", q.log, q.running)
			}
			// What could not be merged counts, and is what the guest writes to.
			want := overlay.Phase("")
			if len(q.active) > 0 {
				want = overlay.Merging
			}
			if len(q.jobs) != 0 || q.phase() != want || len(q.active) == 0 && len(q.nodes) != 0 {
				t.Errorf("%v, %q, %q in %q", q.jobs, q.nodes, q.active, q.phase())
			}
			if exists(filepath.Join(b.m.Data, snapshotsDir)) {
				t.Error("something is left of the snapshot")
			}
		})
	}
}

// QEMU stops a guest also if nobody waits for the answer any more, as it does while it flushes a
// slow disk; the guest goes on then.
func TestCopyCancelledWhileTheGuestIsStopped(t *testing.T) {
	b := newBench(t)
	q := b.run(nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q.sync(func() {
		q.fails = func(c *qmptest.Call) bool {
			if c.Name() != "stop" {
				return false
			}
			q.running = false
			q.log = append(q.log, "stop")
			cancel()
			return true // without an answer
		}
	})
	if _, err := b.h.CreateSnapshot(ctx, b.m, "live", CopyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.running || !slices.Equal(q.log, []string{"stop", "cont"}) || q.phase() != "" {
		t.Errorf("%q, running: %v, %q", q.log, q.running, q.phase())
	}
}

// A clone of a machine that runs has its disks of one moment.
func TestCloneOfRunningMachine(t *testing.T) {
	b := newBench(t)
	q := b.run(nil)
	var how Consistency
	clone, err := b.h.Clone(t.Context(), b.m, "lab", "copy", CopyOptions{Copied: func(is Consistency) { how = is }})
	b.ok(err)
	if !how.Running || how.Frozen || how.Unfrozen == "" {
		t.Errorf("%+v", how)
	}
	disks, _ := b.starts(clone)
	q.mu.Lock()
	defer q.mu.Unlock()
	if b.begins(disks["system-disk"]) != "system" || b.begins(disks["data-claim"]) != "data" || !slices.Equal(q.log, []string{"stop", "moment of 2", "cont", "stop", "cont"}) {
		t.Errorf("%v, %q", disks, q.log)
	}
}

// What QEMU does not have is not copied.
func TestDisksThatQEMUHasNot(t *testing.T) {
	nodes := []qmp.BlockDeviceInfo{{NodeName: qemucmd.DiskNode(0), Driver: "raw", File: "/a"}, {NodeName: qemucmd.DiskNode(1), Driver: "vmdk", File: "/b"}}
	for path, want := range map[string]string{"/a": "", "/b": `is used as "vmdk"`, "/c": "was started without /c: restart it first"} {
		_, err := findDisks([]heldDisk{{name: "d", path: path}}, nodes, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
