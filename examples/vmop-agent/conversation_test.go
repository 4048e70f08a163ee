package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/vmop/sdk/examples/vmop-agent/agent"
)

const patience = time.Minute

// programs are what the agents run: they write down their arguments, one per line.
const programs = `#!/bin/sh
{ printf '%s\n' "${0##*/}" "$@"; echo --; } >>"${0%/*}/log"
[ "${1-}" != unlucky ]
`

// conversation is what both agents answer, the text after the code aside.
var conversation = []struct{ say, want string }{
	{"", "220"},
	{"login alice", "102 201"},
	{"login alice", "201"},
	{"login root", "504"},
	{"login 0", "501"},
	{"login 00", "501"},
	{"login", "500"},
	{"login ", "501"},
	{"login -h", "501"},
	{"login a b", "501"},
	{"login $(reboot)", "501"},
	{"login `reboot`;*", "501"},
	{"login ../../etc/passwd", "501"},
	{`login %s\n`, "501"},
	{"login ä", "501"},
	{"login " + strings.Repeat("x", 65), "501"},
	{`\`, "500"},
	{"*", "500"},
	{"", "500"},
	{"LOGIN alice", "500"},
	{"login alice", "201"},
	{"login unlucky", "102 451"},
	{"login bob@example.org\r", "102 201"},
	{"logout", "102 202"},
	{"logout now", "500"},
	{"login alice", "102 201"},
}

// wantLog is what the programs were called with meanwhile.
const wantLog = `login
alice
--
login
unlucky
--
login
bob@example.org
--
logout
--
login
alice
--
`

// converse holds the conversation, and lets leave end the agent.
func converse(t *testing.T, port io.ReadWriter, dir string, leave func()) {
	t.Helper()
	lines := bufio.NewReader(port)
	codes := func(want string) {
		t.Helper()
		for code := range strings.FieldsSeq(want) {
			line, err := lines.ReadString('\n')
			if err != nil || !strings.HasPrefix(line, code+" ") || strings.ContainsFunc(line[:len(line)-1], func(r rune) bool { return r < ' ' }) {
				t.Fatalf("got %q, %v, want %s", line, err, want)
			}
		}
	}
	for i, c := range conversation {
		if i > 0 {
			if _, err := io.WriteString(port, c.say+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		t.Log(c.say)
		codes(c.want)
	}
	leave()
	codes("240")
	if log, err := os.ReadFile(filepath.Join(dir, "log")); err != nil || string(log) != wantLog {
		t.Errorf("the programs' log: %v\n%s", err, log)
	}
}

// loginPrograms writes the programs into a folder.
func loginPrograms(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"login", "logout"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(programs), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGoAgent(t *testing.T) {
	dir := loginPrograms(t)
	l, err := net.Listen("unix", filepath.Join(dir, "port"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	host, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	guest, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- agent.Serve(ctx, guest,
			agent.Command(filepath.Join(dir, "login"), patience, os.Stderr), agent.Command(filepath.Join(dir, "logout"), patience, os.Stderr))
	}()
	converse(t, host, dir, cancel)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// shellAgent is a shell agent that speaks over a terminal, which is a character device
// as a virtio port is.
type shellAgent struct {
	port *os.File
	cmd  *exec.Cmd
}

// startShellAgent starts one with the folder's programs. Whatever goes wrong, its
// terminal is closed when ctx ends, and the conversation with it.
func startShellAgent(ctx context.Context, t *testing.T, dir string) shellAgent {
	t.Helper()
	master, guest, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guest.Close() })
	if _, err := term.MakeRaw(int(guest.Fd())); err != nil {
		t.Fatal(err)
	}
	// pty.Open leaves a file that blocks, whose reads nothing interrupts.
	defer master.Close()
	fd, err := syscall.Dup(int(master.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	host := os.NewFile(uintptr(fd), master.Name())
	t.Cleanup(func() { _ = host.Close() })
	context.AfterFunc(ctx, func() { _ = host.Close() })
	cmd := exec.CommandContext(ctx, "/bin/sh", "vmop-agent.sh", guest.Name(), filepath.Join(dir, "login"), filepath.Join(dir, "logout"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return shellAgent{port: host, cmd: cmd}
}

func (a shellAgent) leave() { _ = a.cmd.Process.Signal(syscall.SIGTERM) }

func TestShellAgent(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := loginPrograms(t)
	a := startShellAgent(ctx, t, dir)
	converse(t, a.port, dir, a.leave)
	if err := a.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A shell looks for signals between commands only: one that comes before the agent
// reads its next line ends it all the same.
func TestShellAgentMissesNoSignal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := loginPrograms(t)
	for i := range 200 {
		a := startShellAgent(ctx, t, dir)
		lines := bufio.NewReader(a.port)
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "220 ") {
			t.Fatalf("agent %d: got %q, %v, want 220", i, line, err)
		}
		a.leave()
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "240 ") {
			t.Fatalf("agent %d: got %q, %v, want 240", i, line, err)
		}
		if err := a.cmd.Wait(); err != nil {
			t.Errorf("agent %d: %v", i, err)
		}
		_ = a.port.Close()
	}
}
