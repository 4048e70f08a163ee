package host

import (
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qga/qgatest"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// copyingQEMU is a QEMU that copies disks, and what it was asked.
type copyingQEMU struct {
	mu      sync.Mutex
	t       *testing.T
	paths   map[string]string // of disks, by their nodes
	files   map[string]string // of copies, by their nodes
	nodes   []string
	jobs    map[string]*qmp.Job
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
		c.Return(qmp.Status{Running: q.running})
		return
	case "query-chardev":
		c.Return([]qmp.ChardevInfo{{Label: qemucmd.GuestAgentChardev, FrontendOpen: q.agent}})
		return
	case "query-fdsets":
		c.Return([]qmp.FDSet{{ID: 0, FDs: []qmp.FDSetFile{{Opaque: q.paths[qemucmd.DiskNode(0)]}}}})
		return
	case "query-named-block-nodes":
		nodes := []qmp.BlockDeviceInfo{
			{NodeName: qemucmd.DiskNode(0), Driver: "raw", File: "/dev/fdset/0", Image: qmp.ImageInfo{VirtualSize: 64 << 20}},
			{NodeName: qemucmd.DiskNode(1), Driver: "qcow2", File: q.paths[qemucmd.DiskNode(1)], Image: qmp.ImageInfo{VirtualSize: 512}},
		}
		for _, n := range q.nodes {
			nodes = append(nodes, qmp.BlockDeviceInfo{NodeName: n})
		}
		c.Return(nodes)
		return
	case "query-jobs":
		out := []qmp.Job{}
		for _, id := range slices.Sorted(maps.Keys(q.jobs)) {
			out = append(out, *q.jobs[id])
		}
		c.Return(out)
		return
	case "blockdev-add":
		q.nodes = append(q.nodes, text("node-name"))
		if name := text("filename"); name != "" {
			q.files[text("node-name")] = name
		} else {
			q.files[text("node-name")] = q.files[text("file")]
		}
	case "blockdev-del":
		i := slices.Index(q.nodes, text("node-name"))
		for _, other := range q.nodes { // the file's node is used by the content's
			stem, file := strings.CutSuffix(text("node-name"), "-file")
			if i < 0 || file && (other == stem+"-node" || other == stem+"-backend") {
				c.Fail("GenericError", "Node "+text("node-name")+" is in use")
				return
			}
		}
		q.nodes = slices.Delete(q.nodes, i, i+1)
	case "blockdev-create":
		q.jobs[text("job-id")] = &qmp.Job{ID: text("job-id"), Status: qmp.JobConcluded}
	case "blockdev-mirror":
		data, err := os.ReadFile(q.paths[text("device")])
		if err == nil {
			err = os.WriteFile(q.files[text("target")], data[:min(len(data), 64)], 0o600)
		}
		if err != nil {
			q.t.Error(err)
		}
		q.jobs[text("job-id")] = &qmp.Job{ID: text("job-id"), Status: qmp.JobReady, Progress: 7, Total: 7}
	case "block-job-cancel":
		q.jobs[text("device")].Status = qmp.JobConcluded
		if q.running && args["force"] == nil {
			q.log = append(q.log, "a copy ended while the guest wrote")
		}
	case "job-dismiss":
		delete(q.jobs, text("id"))
	case "stop", "cont":
		q.running = c.Name() == "cont"
		q.log = append(q.log, c.Name())
	default:
		q.t.Errorf("QEMU was asked %s", c.Name())
	}
	c.Return(nil)
}

// run has the bench's machine run in a QEMU that copies.
func (b *bench) run(agent map[string]qgatest.Handler) *copyingQEMU {
	b.Helper()
	dir, err := os.MkdirTemp("", "vmop") // a socket's path must be short
	b.ok(err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	q := &copyingQEMU{
		t: b.T, running: true, agent: agent != nil, files: map[string]string{}, jobs: map[string]*qmp.Job{},
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
		{"without an agent", nil, false, []string{"stop", "cont"}, false, "it has no guest agent"},
		{"that is paused", nil, true, nil, false, "it was paused"},
		{
			"with an agent", map[string]qgatest.Handler{"guest-fsfreeze-freeze": freezes, "guest-fsfreeze-thaw": freezes}, false,
			[]string{"guest-fsfreeze-freeze", "stop", "cont", "guest-fsfreeze-thaw"}, true, "",
		},
		{"whose agent does not freeze", map[string]qgatest.Handler{}, false, []string{"stop", "cont"}, false, "its agent cannot freeze file systems"},
		{
			"whose agent cannot freeze now", map[string]qgatest.Handler{"guest-fsfreeze-freeze": refuses, "guest-fsfreeze-thaw": freezes}, false,
			[]string{"guest-fsfreeze-freeze", "guest-fsfreeze-thaw", "stop", "cont"}, false, "no VSS",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			q := b.run(c.agent)
			q.sync(func() {
				q.running = !c.paused
				q.jobs["vmop-copy-0"] = &qmp.Job{ID: "vmop-copy-0", Status: qmp.JobReady} // of one that was killed
				q.nodes = []string{"vmop-copy-0-file", "vmop-copy-0-node"}
			})
			b.abandon(filepath.Join(b.m.Data, snapshotsDir, newSnapshotPrefix+"1"))
			var done int64
			s, err := b.h.CreateSnapshot(t.Context(), b.m, "live", CopyOptions{Progress: func(n, _ int64) { done = n }})
			b.ok(err)
			q.mu.Lock()
			defer q.mu.Unlock()
			if !slices.Equal(q.log, c.log) || !s.Running || s.Frozen != c.frozen || !strings.Contains(s.Unfrozen, c.unfrozen) || c.unfrozen == "" && s.Unfrozen != "" {
				t.Errorf("%q, %+v", q.log, s)
			}
			if len(q.jobs) != 0 || len(q.nodes) != 0 || q.running == c.paused || done == 0 {
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
		{"no room for a copy", func(q *copyingQEMU) func(*qmptest.Call) bool {
			return func(c *qmptest.Call) bool {
				if c.Name() != "query-jobs" || len(q.jobs) < 2 {
					return false
				}
				q.jobs["vmop-copy-1"].Status, q.jobs["vmop-copy-1"].Error = qmp.JobConcluded, "No space left on device"
				return false
			}
		}, "No space left on device", nil},
		{"in the last moment", func(q *copyingQEMU) func(*qmptest.Call) bool {
			return func(c *qmptest.Call) bool {
				if c.Name() == "stop" {
					q.jobs["vmop-copy-0"].Status, q.jobs["vmop-copy-0"].Error = qmp.JobConcluded, "Input/output error"
				}
				return false
			}
		}, "Input/output error", []string{"stop", "cont"}},
		{"QEMU ends", func(*copyingQEMU) func(*qmptest.Call) bool {
			return func(c *qmptest.Call) bool {
				if c.Name() == "blockdev-mirror" {
					c.Server.Hangup()
				}
				return c.Name() == "blockdev-mirror"
			}
		}, "the machine has ended meanwhile", nil},
		{"QEMU cannot", func(*copyingQEMU) func(*qmptest.Call) bool {
			return func(c *qmptest.Call) bool {
				if c.Name() == "blockdev-mirror" {
					c.Fail("GenericError", "Node is busy")
				}
				return c.Name() == "blockdev-mirror"
			}
		}, `disk "system-disk": qmp: blockdev-mirror: Node is busy`, nil},
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
			if c.name != "QEMU ends" && (len(q.jobs) != 0 || len(q.nodes) != 0) {
				t.Errorf("%v, %q", q.jobs, q.nodes)
			}
			if exists(filepath.Join(b.m.Data, snapshotsDir)) {
				t.Error("something is left of the snapshot")
			}
		})
	}
}

// A clone of a machine that runs has its disks of one moment.
func TestCloneOfRunningMachine(t *testing.T) {
	b := newBench(t)
	q := b.run(nil)
	clone, err := b.h.Clone(t.Context(), b.m, "lab", "copy", CopyOptions{})
	b.ok(err)
	disks, _ := b.starts(clone)
	q.mu.Lock()
	defer q.mu.Unlock()
	if b.begins(disks["system-disk"]) != "system" || b.begins(disks["data-claim"]) != "data" || !slices.Equal(q.log, []string{"stop", "cont"}) {
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
	all := map[string]int64{}
	for _, c := range []struct {
		job  qmp.Job
		want bool
	}{
		{qmp.Job{Status: qmp.JobRunning}, false}, // it has not counted yet
		{qmp.Job{Status: qmp.JobRunning, Progress: 3, Total: 10}, false},
		{qmp.Job{Status: qmp.JobRunning, Progress: 10, Total: 14}, true},
		{qmp.Job{Status: qmp.JobReady}, true},
	} {
		if got := copiedOnce([]qmp.Job{c.job}, all); got != c.want {
			t.Errorf("%+v: %v", c.job, got)
		}
	}
	if _, err := ready([]qmp.Job{{Status: qmp.JobConcluded}}); err == nil || errors.Unwrap(err) != nil {
		t.Error(err)
	}
}
