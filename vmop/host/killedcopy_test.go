package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/overlay"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

// killedPatience bounds every wait for a guest.
const killedPatience = 3 * time.Minute

// writingGuest is a QEMU with two disks to which its guest writes a counter in turns, each
// time flushed.
type writingGuest struct {
	*bench
	guest   tinyguest.Guest
	dir     string // of the sockets
	qemu    *exec.Cmd
	console *tinyguest.Console
	// acked are the counters of which the guest knows that they are on its disks.
	acked   [2]atomic.Int64
	writing sync.WaitGroup
	stop    chan struct{}
	counter int64
	kills   *killer
}

// killer is between a command and the monitor of its QEMU, and cuts the connection, or
// kills QEMU, at a command.
type killer struct {
	// at is the command that counts, the one that is killed at: the n-th after this one is
	// armed that is not a question. before says that it does not reach QEMU.
	mu     sync.Mutex
	n      int
	before bool
	kill   func() // QEMU; nil cuts the connection only
	at     string // what it was, once it has happened
	// each, if not nil, is called before and after each command.
	each func(command string, before bool)
}

func (k *killer) arm(n int, before bool, kill func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.n, k.before, k.kill, k.at = n, before, kill, ""
}

// now reports whether it is time, and was at this command.
func (k *killer) now(command string, before bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if strings.HasPrefix(command, "query-") || command == "qmp_capabilities" {
		return false
	}
	if k.each != nil {
		k.each(command, before)
	}
	if k.n == 0 || before != k.before {
		return false
	}
	if k.n--; k.n > 0 {
		return false
	}
	k.at = command
	if k.kill != nil {
		k.kill()
	}
	return true
}

// was is the command that it has happened at, empty if it has not.
func (k *killer) was() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at
}

// relay passes commands and answers on, one after the other.
func (k *killer) relay(client net.Conn, monitor string) {
	defer client.Close()
	server, err := net.Dial("unix", monitor)
	if err != nil {
		return
	}
	defer server.Close()
	answered, ended := make(chan struct{}, 64), make(chan struct{})
	go func() {
		defer client.Close()
		defer close(ended)
		lines := bufio.NewReader(server)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var message struct {
				Return json.RawMessage `json:"return"`
				Error  json.RawMessage `json:"error"`
			}
			isAnswer := json.Unmarshal(line, &message) == nil && (message.Return != nil || message.Error != nil)
			if isAnswer {
				answered <- struct{}{}
			}
			if _, err := client.Write(line); err != nil {
				return
			}
		}
	}()
	requests := json.NewDecoder(client)
	for {
		var raw json.RawMessage
		if err := requests.Decode(&raw); err != nil {
			return
		}
		var request struct {
			Execute string `json:"execute"`
		}
		_ = json.Unmarshal(raw, &request)
		if k.now(request.Execute, true) {
			return
		}
		if _, err := server.Write(append(raw, '\n')); err != nil {
			return
		}
		select { // one after the other
		case <-answered:
		case <-ended:
			return
		}
		if k.now(request.Execute, false) {
			return
		}
	}
}

func newWritingGuest(t *testing.T) *writingGuest {
	t.Helper()
	w := &writingGuest{bench: newBench(t), guest: testbin.TinyGuest(t), kills: &killer{}}
	var err error
	w.dir, err = os.MkdirTemp("", "vmop") // a socket's path must be short
	w.ok(err)
	t.Cleanup(func() { _ = os.RemoveAll(w.dir) })
	// What takes a while to be copied, so that the guest writes meanwhile.
	system := filepath.Join(w.m.Data, "system-disk.img")
	w.ok(os.WriteFile(system, make([]byte, 16<<20), 0o600))
	out, err := exec.Command(testbin.Find(t, "qemu-img"), "create", "-q", "-f", "qcow2", w.external, "16M").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l, err := net.Listen("unix", filepath.Join(w.dir, qemucmd.SocketToolMonitor.FileName()))
	w.ok(err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.kills.relay(conn, filepath.Join(w.dir, "monitor")) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); w.halt(); serving.Wait() })
	w.boot()
	return w
}

// boot starts QEMU, and the guest's writing.
func (w *writingGuest) boot() {
	w.Helper()
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-accel", "tcg,tb-size=32", "-machine", "q35", "-m", "128",
		"-kernel", w.guest.Kernel, "-initrd", w.guest.Initrd, "-append", tinyguest.CommandLine,
		"-chardev", "socket,id=console,server=on,wait=on,path=" + filepath.Join(w.dir, "console"), "-serial", "chardev:console",
		"-qmp", "unix:" + filepath.Join(w.dir, "monitor") + ",server=on,wait=off",
		"-qmp", "unix:" + filepath.Join(w.dir, "other") + ",server=on,wait=off",
		"-add-fd", "fd=3,set=0,opaque=" + filepath.Join(w.m.Data, "system-disk.img"),
	}
	for i, name := range []string{qemucmd.FDSetName(0), w.external} {
		format := []string{"raw", "qcow2"}[i]
		file, _ := json.Marshal(map[string]any{"driver": "file", "node-name": "file" + strconv.Itoa(i), "filename": name, "locking": "on", "discard": "unmap"})
		content := map[string]any{"driver": format, "node-name": qemucmd.DiskNode(i), "file": "file" + strconv.Itoa(i), "discard": "unmap"}
		if format == "qcow2" {
			content["backing"] = nil
		}
		disk, _ := json.Marshal(content)
		args = append(args, "-blockdev", string(file), "-blockdev", string(disk), "-device", "virtio-blk-pci,id="+qemucmd.DiskID(i)+",drive="+qemucmd.DiskNode(i))
	}
	image, err := os.OpenFile(filepath.Join(w.m.Data, "system-disk.img"), os.O_RDWR, 0)
	w.ok(err)
	defer image.Close()
	_ = os.Remove(filepath.Join(w.dir, "console"))
	w.qemu = exec.Command(testbin.Find(w, testbin.QEMU), args...)
	w.qemu.Stderr, w.qemu.ExtraFiles = os.Stderr, []*os.File{image}
	w.ok(w.qemu.Start())
	ctx, cancel := context.WithTimeout(w.Context(), killedPatience)
	defer cancel()
	var conn net.Conn
	for {
		if conn, err = net.Dial("unix", filepath.Join(w.dir, "console")); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			w.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	w.console = tinyguest.NewConsole(conn)
	w.ok(w.console.WaitReady(ctx))
	w.m.Runner, w.m.QEMU, w.m.Status, w.m.State.RuntimeDir = os.Getpid(), w.qemu.Process.Pid, StatusRunning, w.dir
	w.stop = make(chan struct{})
	w.writing.Go(w.write)
}

// write writes until the guest has ended.
func (w *writingGuest) write() {
	for {
		select {
		case <-w.stop:
			return
		default:
		}
		// What a kill has cut short is done once more: the disks are never two apart.
		if w.acked[1].Load() == w.counter {
			w.counter++
		}
		for i, disk := range []string{"vda", "vdb"} {
			ctx, cancel := context.WithTimeout(context.Background(), killedPatience)
			_, err := w.console.Command(ctx, fmt.Sprintf("write %s 4096 %08d", disk, w.counter))
			cancel()
			if err != nil {
				return
			}
			w.acked[i].Store(w.counter)
		}
	}
}

// writesOn waits until the guest has written something to both disks.
func (w *writingGuest) writesOn() {
	w.Helper()
	was := w.acked[1].Load()
	for deadline := time.Now().Add(killedPatience); w.acked[1].Load() < was+2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatal("the guest does not go on")
		}
	}
}

// halt ends QEMU, if that has not been done, and what belongs to it.
func (w *writingGuest) halt() {
	if w.qemu == nil {
		return
	}
	_ = w.qemu.Process.Kill()
	_ = w.qemu.Wait()
	close(w.stop)
	_ = w.console.Close()
	w.writing.Wait()
	w.qemu = nil
}

// has are the counters in the images of two disks.
func (w *writingGuest) has(system, data string) (out [2]int64) {
	w.Helper()
	for i, path := range []string{system, data} {
		raw := path
		if i == 1 {
			raw = filepath.Join(w.TempDir(), "raw")
			tool, err := exec.Command("qemu-img", "convert", "-U", "-f", "qcow2", "-O", "raw", path, raw).CombinedOutput()
			if err != nil {
				w.Fatalf("%v: %s", err, tool)
			}
		}
		f, err := os.Open(raw)
		w.ok(err)
		text := make([]byte, 8)
		_, err = f.ReadAt(text, 4096)
		w.ok(errors.Join(err, f.Close()))
		out[i], err = strconv.ParseInt(string(text), 10, 64)
		if text[0] != 0 {
			w.ok(err)
		}
	}
	return out
}

// snapshot checks that a snapshot is that of one moment, and removes it.
func (w *writingGuest) snapshot(name string, since [2]int64) {
	w.Helper()
	dir := filepath.Join(w.m.Data, snapshotsDir, name)
	has := w.has(filepath.Join(dir, "system-disk.img"), filepath.Join(dir, "data-claim.img"))
	if has[0] != has[1] && has[0] != has[1]+1 || has[0] < since[0] || has[1] < since[1] {
		w.Errorf("%s has %v, and the guest had written %v before", name, has, since)
	}
	w.ok(w.m.DeleteSnapshot(name))
}

func (w *writingGuest) written() [2]int64 { return [2]int64{w.acked[0].Load(), w.acked[1].Load()} }

// consistent checks the disks of a machine that does not run.
func (w *writingGuest) consistent(when string) {
	w.Helper()
	written := w.written()
	system := filepath.Join(w.m.Data, "system-disk.img")
	has := w.has(system, w.external)
	// The last one may have been written, and nobody have been told.
	for i := range has {
		if has[i] != written[i] && has[i] != written[i]+1 {
			w.Errorf("%s: the disks have %v, and the guest has written %v", when, has, written)
		}
	}
	if out, err := exec.Command("qemu-img", "check", "-q", "-f", "qcow2", w.external).CombinedOutput(); err != nil {
		// Clusters that nobody has are what every QEMU leaves that is killed.
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 3 {
			w.Errorf("%s: %v: %s", when, err, out)
		}
	}
	if exists(filepath.Join(w.m.Data, overlay.Dir)) {
		w.Errorf("%s: overlays are left", when)
	}
}

// Whoever is killed at whatever moment of a copy, the guest has what it has written, and
// the next copy is made.
func TestKilledCopies(t *testing.T) {
	t.Parallel()
	w := newWritingGuest(t)
	ctx := t.Context()
	w.writesOn()

	// One that is not disturbed.
	since := w.written()
	_, err := w.h.CreateSnapshot(ctx, w.m, "first", CopyOptions{})
	w.ok(err)
	w.snapshot("first", since)
	w.writesOn()

	// The command, before and after everything that it has QEMU do.
	var moments []string
	for n := 1; ; n++ {
		ended := false
		for _, before := range []bool{true, false} {
			w.kills.arm(n, before, nil)
			_, err := w.h.CreateSnapshot(ctx, w.m, "killed", CopyOptions{})
			at := w.kills.was()
			w.kills.arm(0, false, nil)
			if at == "" {
				w.ok(err)
				w.snapshot("killed", since)
				ended = true
				break
			}
			if err == nil {
				t.Errorf("%s: the connection was cut, and nobody said so", at)
				w.snapshot("killed", since)
			}
			moments = append(moments, fmt.Sprintf("%s before=%v in %s", at, before, journalOf(w.m.Data)))
			since := w.written()
			if _, err := w.h.CreateSnapshot(ctx, w.m, "next", CopyOptions{}); err != nil {
				t.Fatalf("after %s (before: %v): %v", at, before, err)
			}
			w.snapshot("next", since)
			w.writesOn()
			if exists(filepath.Join(w.m.Data, overlay.Dir)) {
				t.Errorf("after %s (before: %v) overlays are left", at, before)
			}
		}
		if ended {
			break
		}
	}
	t.Logf("killed the command at %d moments: %s", len(moments), strings.Join(moments, "; "))

	// QEMU, where what is on the storage becomes another thing.
	for _, c := range []struct {
		n      int
		before bool
		want   string
	}{
		{6, true, "transaction"}, {6, false, "transaction"}, {7, false, "cont"}, {9, true, "block-commit"}, {12, false, "job-complete"},
		{13, true, "job-finalize"}, {13, false, "job-finalize"}, {16, false, "cont"},
	} {
		w.kills.arm(c.n, c.before, func() { _ = w.qemu.Process.Kill() })
		_, err := w.h.CreateSnapshot(ctx, w.m, "killed", CopyOptions{})
		at := w.kills.was()
		w.kills.arm(0, false, nil)
		if at != c.want {
			t.Fatalf("the command %d is %q, and %q was to be it: %v", c.n, at, c.want, err)
		}
		w.halt()
		w.m.Runner, w.m.QEMU, w.m.Status = 0, 0, StatusDied
		if err == nil || exists(filepath.Join(w.m.Data, snapshotsDir, "killed")) {
			t.Errorf("%s: there is a snapshot, and its maker said %v", at, err)
		}
		phase := journalOf(w.m.Data)
		w.ok(w.m.mergeStopped(ctx))
		w.consistent(fmt.Sprintf("QEMU was killed at %s (before: %v) in %s", at, c.before, phase))
		w.boot()
	}
}

// Whoever has a disk grow at whatever moment of a copy either has a larger disk or an error:
// the guest never has less than it had while it executes, and nothing is lost.
func TestDisksGrowWhileTheyAreCopied(t *testing.T) {
	t.Parallel()
	w := newWritingGuest(t)
	ctx := t.Context()
	w.writesOn()
	other, err := qmp.Dial(ctx, filepath.Join(w.dir, "other"), qmp.Options{})
	w.ok(err)
	defer other.Close()
	sizes := [2]int64{16 << 20, 16 << 20}
	var grew, refused []string
	each := func(command string, before bool) {
		when := fmt.Sprintf("%s (before: %v)", command, before)
		for i := range sizes {
			_, err := qmp.Do(ctx, other, qmp.BlockResize{NodeName: qemucmd.DiskNode(i), Size: sizes[i] + 1<<16})
			switch {
			case err == nil:
				sizes[i] += 1 << 16
				grew = append(grew, when)
			case errors.As(err, new(*qmp.Error)):
				refused = append(refused, when)
			default:
				t.Error(err)
			}
		}
		status, err := qmp.Do(ctx, other, qmp.QueryStatus{})
		if err != nil {
			t.Error(err)
		}
		if !status.Running {
			return // it sees nothing now
		}
		blocks, err := qmp.Do(ctx, other, qmp.QueryBlock{})
		if err != nil {
			t.Error(err)
		}
		for i := range sizes {
			for _, b := range blocks {
				if strings.Contains(b.QDev, qemucmd.DiskID(i)) && b.Inserted.Image.VirtualSize != sizes[i] {
					t.Errorf("%s: the guest has %d bytes of disk %d, which has grown to %d", when, b.Inserted.Image.VirtualSize, i, sizes[i])
				}
			}
		}
	}
	w.kills.mu.Lock()
	w.kills.each = each
	w.kills.mu.Unlock()
	since := w.written()
	if _, err := w.h.CreateSnapshot(ctx, w.m, "grown", CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	w.kills.mu.Lock()
	w.kills.each = nil
	w.kills.mu.Unlock()
	w.snapshot("grown", since)
	w.writesOn()
	t.Logf("grew at %q, refused at %q", grew, refused)
	if !slices.Contains(grew, "transaction (before: true)") || !slices.Contains(refused, "block-commit (before: true)") {
		t.Error("disks grow until the moment of a copy, and not while they have overlays")
	}
	nodes, err := qmp.Do(ctx, other, qmp.QueryNamedBlockNodes{Flat: true})
	w.ok(err)
	for _, n := range nodes {
		for i := range sizes {
			if n.NodeName == qemucmd.DiskNode(i) && n.Image.VirtualSize != sizes[i] {
				t.Errorf("disk %d has %d bytes, and has grown to %d", i, n.Image.VirtualSize, sizes[i])
			}
		}
	}
	w.halt()
	w.m.Runner, w.m.QEMU, w.m.Status = 0, 0, StatusDied
	w.consistent("after it")
}

func journalOf(data string) string {
	j, err := overlay.Read(data)
	if err != nil {
		return err.Error()
	}
	if j == nil {
		return "no phase"
	}
	return string(j.Phase)
}
