package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/vmopagent"
)

// bootPatience is more than twenty times what the slowest step takes on a quiet
// machine.
const bootPatience = 5 * time.Minute

// TestInAGuest runs the Go agent on a real virtio-serial port, with the host's part
// that the runner has.
func TestInAGuest(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), bootPatience)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "agent"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	guest, err := testbin.TinyGuest(t).WithFiles(dir, tinyguest.File{Name: "/bin/vmop-agent", Mode: 0o755, Data: program})
	if err != nil {
		t.Fatal(err)
	}
	console, port := boot(ctx, t, dir, guest)

	states := make(chan vmopagent.State, 100)
	users := make(chan string)
	ended := make(chan error, 1)
	defer func() { cancel(); <-ended }()
	go func() {
		ended <- vmopagent.Run(ctx, port, vmopagent.NewMachine(vmopagent.Config{}, "alice"), vmopagent.Inputs{Users: users}, func(s vmopagent.State) { states <- s })
	}()
	until := func(reason vmopagent.Reason, user string, failure vmopagent.Failure) {
		t.Helper()
		for {
			select {
			case s := <-states:
				t.Logf("%+v", s)
				if s.Reason == reason && s.LoggedInUser == user && s.Failure == failure {
					return
				}
			case <-ctx.Done():
				t.Fatalf("no state %s %q %s; console:\n%s", reason, user, failure, console.Transcript())
			}
		}
	}
	until(vmopagent.ReasonDisconnected, "", "")
	if err := console.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	start := func() (process string) {
		t.Helper()
		out, err := console.Command(ctx, "exec /bin/vmop-agent")
		if err != nil {
			t.Fatal(err)
		}
		process, ok := strings.CutPrefix(strings.TrimSpace(out), "process ")
		if !ok {
			t.Fatal(out)
		}
		return process
	}
	process := start()
	until(vmopagent.ReasonLoggedIn, "alice", "")
	users <- "root"
	until(vmopagent.ReasonProcessing, "", vmopagent.FailureRefused)
	users <- "bob"
	until(vmopagent.ReasonLoggedIn, "bob", "")
	// The agent is ended, and another one takes over.
	if _, err := console.Command(ctx, "kill "+process); err != nil {
		t.Fatal(err)
	}
	until(vmopagent.ReasonDisconnected, "", "")
	start()
	until(vmopagent.ReasonLoggedIn, "bob", "")
	users <- ""
	until(vmopagent.ReasonNotRequested, "", "")
}

// boot starts the guest and returns its console and the host's end of the agent's
// port. The test's end ends the machine.
func boot(ctx context.Context, t *testing.T, dir string, guest tinyguest.Guest) (*tinyguest.Console, net.Conn) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, testbin.Find(t, testbin.QEMU),
		"-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-accel", "tcg,tb-size=32", "-m", "192",
		"-kernel", guest.Kernel, "-initrd", guest.Initrd, "-append", tinyguest.CommandLine,
		"-chardev", "socket,id=console,fd=3,server=on,wait=off", "-serial", "chardev:console",
		"-chardev", "socket,id=agent,fd=4,server=on,wait=off",
		"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent,name="+tinyguest.PortAgent)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	// Connected before QEMU starts: nothing that the guest says is lost.
	var conns []net.Conn
	for _, name := range []string{"console", "port"} {
		path := filepath.Join(dir, name)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		_ = l.Close()
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	console := tinyguest.NewConsole(conns[0])
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		_ = console.Close()
		_ = conns[1].Close()
		if t.Failed() {
			t.Logf("QEMU said: %s\nconsole:\n%s", output.Bytes(), console.Transcript())
		}
	})
	return console, conns[1]
}
