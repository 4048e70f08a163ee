package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/host"
)

// The storage of this host is really full. The script has a file system of its own for
// that, in namespaces that need no privileges: the test starts itself in them.
func TestStorageIsFull(t *testing.T) {
	t.Parallel()
	guest := testbin.TinyGuest(t)
	testbin.Find(t, testbin.QEMU)
	const inside = "VMOP_TEST_FULL_DISK"
	if os.Getenv(inside) == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		// Its scripts end, and their machines with them, before it has to be killed.
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience+time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+(2*patience).String())
		cmd.Env = append(os.Environ(), inside+"=yes")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	files, err := filepath.Glob("testdata/fulldisk/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files { // an emulated guest wants a processor for itself
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { fullDiskScript(t, guest, file) })
	}
}

// fullDiskScript runs a script that has a small file system for machines.
func fullDiskScript(t *testing.T, guest tinyguest.Guest, file string) {
	var copies heldCopy
	testscript.Run(t, testscript.Params{
		Files: []string{file},
		Setup: func(e *testscript.Env) error {
			// What setup defers, to end the machines, comes before this: it finds them there.
			var mounted string
			e.Defer(func() {
				if mounted != "" {
					_ = unix.Unmount(mounted, unix.MNT_DETACH)
				}
			})
			if err := setup(e); err != nil {
				return err
			}
			data := e.Getenv("VMOP_DATA_DIR")
			if err := os.Mkdir(data, 0o700); err != nil {
				return err
			}
			// A machine goes on when there are 64 MiB. And there are copies of disks.
			if err := unix.Mount("none", data, "tmpfs", 0, "size=128m,mode=0700"); err != nil {
				return err
			}
			mounted = data
			return exportGuest(guest, filepath.Join(e.WorkDir, "images"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"copied": copies.copiedCommand, "expect": expectCommand, "fill": fillCommand, "guest": guestCommand, "held-copy": copies.heldCopyCommand,
			"send": sendCommand, "status": statusCommand,
		},
	})
}

// fillCommand writes a file until there is no space left: fill FILE.
func fillCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fill FILE")
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	chunk := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(chunk)
		if errors.Is(err, syscall.ENOSPC) && len(chunk) > 1 {
			chunk, err = chunk[:len(chunk)/2], nil
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		ts.Fatalf("%v", err)
	}
	ts.Check(f.Close())
}

// sendCommand types a line into a guest that may not answer: send NAMESPACE/NAME LINE...
func sendCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: send NAMESPACE/NAME LINE...")
	}
	c := guestConsole(ts, args[0])
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(c.WaitReady(ctx))
	ts.Check(c.Send(strings.Join(args[1:], " ")))
}

// statusCommand waits until a machine has a status, as the commands see it: status
// NAMESPACE/NAME STATUS.
func statusCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: status NAMESPACE/NAME STATUS")
	}
	h, err := host.Open(host.Options{DataDir: ts.Getenv("VMOP_DATA_DIR"), Getenv: ts.Getenv})
	ts.Check(err)
	m, err := h.Find(args[0], "")
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err = h.Wait(ctx, m, func(m *host.Machine) (bool, error) { return m.Status == host.Status(args[1]), nil })
	if err != nil {
		ts.Fatalf("%s is %s: %v", args[0], m.Status, err)
	}
}

// heldCopy is the snapshot that a script is making.
type heldCopy struct {
	goOn func() // has it go on
	done chan error
}

// heldCopyCommand begins a snapshot of a machine that runs, and returns in the middle of
// it, while the guest writes to overlays: held-copy NAMESPACE/NAME SNAPSHOT.
func (c *heldCopy) heldCopyCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: held-copy NAMESPACE/NAME SNAPSHOT")
	}
	h, err := host.Open(host.Options{DataDir: ts.Getenv("VMOP_DATA_DIR"), Getenv: ts.Getenv})
	ts.Check(err)
	m, err := h.Find(args[0], "")
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	held, released := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() {
		close(held)
		<-released
	})
	c.goOn, c.done = sync.OnceFunc(func() { close(released) }), make(chan error, 1)
	go func() {
		_, err := h.CreateSnapshot(ctx, m, args[1], host.CopyOptions{Progress: func(int64, int64) { hold() }})
		c.done <- err
		close(c.done)
	}()
	ts.Defer(func() { // also of a script that has failed
		cancel()
		c.goOn()
		for range c.done {
		}
	})
	select {
	case <-held:
	case err := <-c.done:
		ts.Fatalf("the snapshot has ended: %v", err)
	case <-ctx.Done():
		ts.Fatalf("nothing is copied")
	}
}

// copiedCommand has the snapshot go on, waits for its end and prints its error, if there
// is one: [!] copied.
func (c *heldCopy) copiedCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) > 0 || c.goOn == nil {
		ts.Fatalf("usage: [!] copied, after held-copy")
	}
	c.goOn()
	err := <-c.done
	if err != nil {
		_, werr := fmt.Fprintln(ts.Stderr(), err)
		ts.Check(werr)
	}
	if (err != nil) != neg {
		ts.Fatalf("unexpected end of the snapshot: %v", err)
	}
}
