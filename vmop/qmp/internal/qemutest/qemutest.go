// Package qemutest starts a real QEMU for the tests of this module's QMP
// packages. The machine is paused, so that it has no guest and needs no
// acceleration.
package qemutest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const binary = "qemu-system-x86_64"

// exitPatience bounds the wait for a QEMU that was asked to exit, which usually takes a few
// milliseconds.
const exitPatience = 30 * time.Second

// Machine is a running QEMU.
type Machine struct {
	// Sockets are the paths of its monitors, which accept connections already.
	Sockets []string

	cmd    *exec.Cmd
	exited chan struct{}
	output bytes.Buffer
}

// Start runs QEMU with that many monitors and the arguments, which must choose a machine type. It
// is killed when the test ends. The test fails if QEMU is not installed.
func Start(t testing.TB, monitors int, args ...string) *Machine {
	t.Helper()
	path, err := exec.LookPath(binary)
	if err != nil {
		t.Fatalf("%v; install it with: make deps", err)
	}
	dir, err := os.MkdirTemp("", "qmp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	m := &Machine{exited: make(chan struct{})}
	m.cmd = exec.Command(path, "-S", "-no-user-config", "-nodefaults", "-display", "none", "-accel", "tcg,tb-size=16")
	for i := range monitors {
		socket := filepath.Join(dir, fmt.Sprintf("qmp%d", i))
		m.Sockets = append(m.Sockets, socket)
		m.cmd.ExtraFiles = append(m.cmd.ExtraFiles, listen(t, socket))
		// The socket listens before QEMU starts, so no client can connect too early.
		m.cmd.Args = append(m.cmd.Args,
			"-chardev", fmt.Sprintf("socket,id=qmp%d,fd=%d,server=on,wait=off", i, 3+i),
			"-mon", fmt.Sprintf("chardev=qmp%d,mode=control", i))
	}
	m.cmd.Args = append(m.cmd.Args, args...)
	m.cmd.Stdout, m.cmd.Stderr = &m.output, &m.output
	err = m.cmd.Start()
	for _, f := range m.cmd.ExtraFiles {
		_ = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.exited)
		_ = m.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = m.cmd.Process.Kill()
		m.Wait(t)
		if t.Failed() && m.output.Len() > 0 {
			t.Logf("qemu said: %s", m.output.Bytes())
		}
	})
	return m
}

// Wait waits until QEMU has exited.
func (m *Machine) Wait(t testing.TB) {
	t.Helper()
	select {
	case <-m.exited:
	case <-time.After(exitPatience):
		t.Fatal("qemu does not exit")
	}
}

func listen(t testing.TB, path string) *os.File {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return f
}
