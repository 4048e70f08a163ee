package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/vmop/runner"
)

// TestHoldsAMachine is the other process of [holdElsewhere].
func TestHoldsAMachine(t *testing.T) {
	dir, doing, ok := strings.Cut(os.Getenv("VMOP_TEST_HOLDS"), "|")
	if !ok {
		return
	}
	lock, err := runner.LockFor(dir, doing)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("locked")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Error(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// holdElsewhere has another process do something with a machine until the test ends, or
// release is called, which fails if that process was ended by somebody.
func holdElsewhere(t *testing.T, dir, doing string) (pid int, release func()) {
	t.Helper()
	cmd := testbin.Self(context.Background(), t, "VMOP_TEST_HOLDS="+dir+"|"+doing, "-test.run=^TestHoldsAMachine$")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := bufio.NewReader(out)
	if line, err := read.ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("%q %v", line, err)
	}
	done := false
	release = func() {
		if done {
			return
		}
		done = true
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, read)
		if err := cmd.Wait(); err != nil {
			t.Errorf("who had the machine: %v", err)
		}
	}
	t.Cleanup(release)
	return cmd.Process.Pid, release
}

// A command that does something with a machine that does not run is not its runner: it is
// not asked to stop, and everybody else is told what it does.
func TestBusyMachine(t *testing.T) {
	b := newBench(t)
	if _, err := b.h.CreateSnapshot(t.Context(), b.m, "s", CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	pid, release := holdElsewhere(t, b.m.Data, "cloned")
	m, err := b.h.Machine(b.m.Namespace, b.m.Name)
	b.ok(err)
	said := fmt.Sprintf("it is being cloned (process %d)", pid)
	if m.Running() || m.Busy == nil || m.Busy.PID != pid || m.Message() != said {
		t.Errorf("running %v, busy %v, %q", m.Running(), m.Busy, m.Message())
	}
	b.ok(m.Stop(t.Context(), StopOptions{Now: true}))
	for name, do := range map[string]func() error{
		"delete":          func() error { _, err := m.remove(DeleteOptions{Disks: true}); return err },
		"rename":          func() error { _, err := b.h.Rename(m, "lab", "front"); return err },
		"clone":           func() error { _, err := b.h.Clone(t.Context(), m, "lab", "front", CopyOptions{}); return err },
		"snapshot":        func() error { _, err := b.h.CreateSnapshot(t.Context(), m, "t", CopyOptions{}); return err },
		"restore":         func() error { return b.h.RestoreSnapshot(t.Context(), m, "s", RestoreOptions{}) },
		"delete snapshot": func() error { return m.DeleteSnapshot("s") },
		"resize":          func() error { _, err := b.h.ResizeDisk(t.Context(), m, "system-disk", 1<<40); return err },
	} {
		if err := do(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: %v", name, err)
		}
	}
	release()
	m, err = b.h.Machine(b.m.Namespace, b.m.Name)
	b.ok(err)
	if m.Busy != nil {
		t.Errorf("busy after the end: %v", m.Busy)
	}
	b.ok(m.DeleteSnapshot("s"))
}
