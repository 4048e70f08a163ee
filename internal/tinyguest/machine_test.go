package tinyguest_test

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
	"testing"
	"time"

	diskfile "github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat12"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
)

// patience is more than twenty times what the slowest test takes on a quiet machine.
const patience = 5 * time.Minute

// machine is a running QEMU with the tiny guest in it.
type machine struct {
	*tinyguest.Console
	ctx     context.Context
	dir     string
	qmpConn net.Conn
	qmp     *bufio.Reader
	events  []string
	exited  chan struct{}
	exit    error // how QEMU ended, to be read after exited
}

// startGuest boots a guest with further words on its command line and further
// arguments for QEMU. The test's end ends it.
func startGuest(t *testing.T, guest tinyguest.Guest, words string, args ...string) *machine {
	t.Helper()
	qemu := testbin.Find(t, testbin.QEMU)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	m := &machine{ctx: ctx, dir: t.TempDir(), exited: make(chan struct{})}

	argv := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-accel", "tcg,thread=single,tb-size=32", "-machine", "q35", "-m", "128",
		"-kernel", guest.Kernel, "-initrd", guest.Initrd, "-append", tinyguest.CommandLine + " " + words,
		"-chardev", "socket,id=console,fd=3,server=on,wait=off", "-serial", "chardev:console",
		"-chardev", "socket,id=qmp,fd=4,server=on,wait=off", "-mon", "chardev=qmp,mode=control",
	}
	cmd := exec.CommandContext(ctx, qemu, append(argv, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.dir, os.Stderr, os.Stderr
	// Listening sockets handed down and connected before QEMU starts: nothing
	// the guest says is lost, and nothing has to be tried again.
	conns := make([]net.Conn, 2)
	for i, name := range []string{"console", "qmp"} {
		path := filepath.Join(m.dir, name)
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		file, err := listener.File()
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
		if conns[i], err = net.Dial("unix", path); err != nil {
			t.Fatal(err)
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range cmd.ExtraFiles {
		_ = f.Close()
	}
	m.Console, m.qmpConn, m.qmp = tinyguest.NewConsole(conns[0]), conns[1], bufio.NewReader(conns[1])
	if err := m.qmpConn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.exited)
		m.exit = cmd.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		<-m.exited
		_ = m.qmpConn.Close()
		_ = m.Close()
		if t.Failed() {
			t.Logf("QEMU ended with: %v\ntranscript:\n%s", m.exit, m.Transcript())
		}
	})
	if _, err := m.qmp.ReadString('\n'); err != nil { // greeting
		t.Fatal(err)
	}
	m.qmpDo(t, "qmp_capabilities", "{}")
	return m
}

// qmpDo executes a QMP command with arguments in JSON.
func (m *machine) qmpDo(t *testing.T, command, arguments string) {
	t.Helper()
	if _, err := fmt.Fprintf(m.qmpConn, `{"execute":%q,"arguments":%s}`+"\n", command, arguments); err != nil {
		t.Fatal(err)
	}
	for {
		reply := m.qmpRead(t)
		if e := reply["error"]; e != nil {
			t.Fatalf("%s: %s", command, e)
		}
		if reply["return"] != nil {
			return
		}
	}
}

// qmpEvent waits for an event that may have arrived already.
func (m *machine) qmpEvent(t *testing.T, name string) {
	t.Helper()
	for !slices.Contains(m.events, name) {
		m.qmpRead(t)
	}
	m.events = slices.DeleteFunc(m.events, func(e string) bool { return e == name })
}

func (m *machine) qmpRead(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	line, err := m.qmp.ReadBytes('\n')
	if err != nil {
		t.Fatalf("QMP: %v", err)
	}
	var reply map[string]json.RawMessage
	if err := json.Unmarshal(line, &reply); err != nil {
		t.Fatalf("QMP: %s: %v", line, err)
	}
	if e := reply["event"]; e != nil {
		m.events = append(m.events, string(e[1:len(e)-1]))
	}
	return reply
}

func (m *machine) ready(t *testing.T) {
	t.Helper()
	if err := m.WaitReady(m.ctx); err != nil {
		t.Fatal(err)
	}
}

// answer asks and wants exactly this.
func (m *machine) answer(t *testing.T, command, want string) {
	t.Helper()
	got, err := m.Command(m.ctx, command)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", command, got, want)
	}
}

// refuse asks and wants an error.
func (m *machine) refuse(t *testing.T, command, want string) {
	t.Helper()
	got, err := m.Command(m.ctx, command)
	if !errors.Is(err, tinyguest.ErrCommand) || got != want {
		t.Errorf("%s: got %q and %v, want %q", command, got, err, want)
	}
}

func (m *machine) expect(t *testing.T, text string) {
	t.Helper()
	if _, err := m.Expect(m.ctx, text); err != nil {
		t.Fatal(err)
	}
}

// gone waits until the guest has switched itself off and QEMU has ended.
func (m *machine) gone(t *testing.T) {
	t.Helper()
	m.qmpEvent(t, "SHUTDOWN")
	select {
	case <-m.exited:
	case <-m.ctx.Done():
		t.Fatal("QEMU did not end")
	}
	if m.exit != nil {
		t.Errorf("QEMU ended with: %v", m.exit)
	}
}

// file puts a file of some size with text at its start into the machine's
// folder, which is also QEMU's working directory.
func file(t *testing.T, path, text string, size int64) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// fatVolume makes an image with a FAT file system and one file.
func fatVolume(t *testing.T, path, name, text string) {
	t.Helper()
	const size = 1 << 20
	storage, err := diskfile.CreateFromPath(path, size)
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	fs, err := fat12.Create(storage, size, 0, 512, "TEST", true)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fs.OpenFile("/"+name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}
