package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/vmop/serial"
)

// A person at a terminal: Ctrl-] ends a view, Ctrl-C shuts the guest down, and
// the terminal is afterwards what it was.
func TestTerminal(t *testing.T) {
	t.Parallel()
	guest := testbin.TinyGuest(t)
	testbin.Find(t, testbin.QEMU)
	dir := t.TempDir()
	run, err := os.MkdirTemp("", "vmop") // short, because a socket's path must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	images := filepath.Join(dir, "images")
	if err := exportGuest(guest, images); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+run, "VMOP_DATA_DIR="+filepath.Join(dir, "data"))
	start := []string{"run", "../../examples/hello/vm.yaml", "--image-repository", images, "--accel", "tcg"}

	t.Run("Ctrl-C in the view", func(t *testing.T) {
		s := startOnTerminal(t, env, start...)
		s.expect("Ctrl-C shuts it down, Ctrl-] ends the view.")
		s.expect("vmop-guest: ready")
		s.send("\x03")
		s.expect("shut down on request")
		s.end(0)
	})
	t.Run("Ctrl-] in the view", func(t *testing.T) {
		s := startOnTerminal(t, env, start...)
		s.expect("vmop-guest: ready")
		// What the machine has to say waits while the guest has the screen.
		for _, command := range []string{"pause", "resume"} {
			cmd := exec.Command("vmop-cli", command, "hello")
			cmd.Env = env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		s.send("still-the-guest\n")
		s.expect("still-the-guest")
		s.neverYet("GuestExecuting")
		s.send("\x1d")
		s.expect("warning: GuestExecuting: False, Paused: the guest is paused")
		s.expect("default/hello goes on here. Come back with: vmop-cli console default/hello.")

		c := startOnTerminal(t, env, "console", "hello")
		c.expect("Ctrl-] ends the view.")
		c.expect("vmop-guest: ready")
		c.send("\x03") // the guest's
		c.send("mac\n")
		c.expect("mac")
		c.expect("eth0")
		c.send("\x1d")
		c.expect("default/hello goes on.")
		c.end(0)

		c = startOnTerminal(t, env, "console", "hello")
		c.expect("vmop-guest: ready")
		s.send("\x03") // to the terminal, which makes it a signal
		s.expect("shut down on request")
		s.end(0)
		c.expect("default/hello has ended.")
		c.end(0)
	})
	t.Run("delete asks", func(t *testing.T) {
		disk := filepath.Join(dir, "data", "machines", "default", "hello", "x-disk.img")
		if err := os.WriteFile(disk, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s := startOnTerminal(t, env, "delete", "hello", "--disks")
		s.expect("Type the machine's name to go on: ")
		s.send("no\n")
		s.expect("nothing was deleted")
		s.end(1)
		s = startOnTerminal(t, env, "delete", "hello", "--disks")
		s.expect("go on: ")
		s.send("hello\n")
		s.expect("default/hello is deleted.")
		s.end(0)
		if _, err := os.Stat(disk); !os.IsNotExist(err) {
			t.Errorf("the disk: %v", err)
		}
	})
}

// onTerminal is a program that runs on a terminal of its own.
type onTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	tty    *os.File // our end
	theirs *os.File
	before *unix.Termios
	ended  chan struct{}
	arrive chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
	pos int
}

func startOnTerminal(t *testing.T, env []string, args ...string) *onTerminal {
	t.Helper()
	tty, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &onTerminal{t: t, tty: tty, theirs: theirs, ended: make(chan struct{}), arrive: make(chan struct{}, 1)}
	if s.before, err = unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command("vmop-cli", args...)
	s.cmd.Env = env
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirs, theirs, theirs
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s, tty) // until both ends are closed
	}()
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
		_ = theirs.Close()
		_ = tty.Close()
		<-read
	})
	return s
}

// Write takes what the program prints.
func (s *onTerminal) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Write(b)
	select {
	case s.arrive <- struct{}{}:
	default:
	}
	return len(b), nil
}

// expect waits for a text behind the last one that was expected.
func (s *onTerminal) expect(text string) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		out := s.out.String()
		i := strings.Index(out[s.pos:], text)
		if i >= 0 {
			s.pos += i + len(text)
		}
		s.mu.Unlock()
		if i >= 0 {
			return
		}
		select {
		case <-s.arrive:
		case <-deadline:
			s.t.Fatalf("waited in vain for %q in\n%s", text, out)
		}
	}
}

// neverYet checks that a text is not there so far.
func (s *onTerminal) neverYet(text string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if out := s.out.String(); strings.Contains(out, text) {
		s.t.Errorf("%q is told too early:\n%s", text, out)
	}
}

func (s *onTerminal) send(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the program's end.
func (s *onTerminal) end(code int) {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Fatalf("it does not end:\n%s", s.out.String())
	}
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d:\n%s", got, code, s.out.String())
	}
	after, err := unix.IoctlGetTermios(int(s.theirs.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(s.before, after); diff != "" {
		s.t.Errorf("the terminal is not what it was: -before +after\n%s", diff)
	}
}

// What a terminal answers to a guest's questions does not become a command of the shell
// when the view ends.
func TestAnswersOfATerminalAreDropped(t *testing.T) {
	tty, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(tty.Close(), theirs.Close()) }()
	raw, err := serial.MakeRaw(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tty.WriteString("answer"); err != nil {
		t.Fatal(err)
	}
	waiting := func() int {
		n, err := unix.IoctlGetInt(int(theirs.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); waiting() < len("answer"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the answer does not arrive")
		}
	}
	raw.Restore()
	// Without whole lines only a raw terminal tells what there is.
	if raw, err = serial.MakeRaw(theirs); err != nil {
		t.Fatal(err)
	}
	defer raw.Restore()
	if n := waiting(); n > 0 {
		t.Errorf("%d bytes are the shell's to read", n)
	}
}
