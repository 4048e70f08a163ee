package runner

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// The host's storage is really full: the machine waits, says for which disk, and
// goes on by itself once there is space. The guest has noticed nothing, and what
// it wrote is on the disk. The runner has a file system of its own for that, in
// namespaces that need no privileges.
func TestFullFileSystem(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	small := filepath.Join(filepath.Dir(d.Data), "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	c := testConfig(t)
	c.Runner.VM.Drives = []runnerconfig.Drive{
		{Type: "raw", Name: "other", File: filepath.Join(d.Data, "other.img"), Size: 1 << 20},
		{Type: "raw", Name: "data", File: filepath.Join(small, "disk.img"), Size: 64 << 20},
	}
	p := startProcess(t, c, d, func(p *process, cmd *exec.Cmd) {
		p.SmallDisk, p.SmallSize = small, 96<<20
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
	})
	defer func() { _ = p.cmd.Process.Kill() }() // of a test that failed
	p.until(t, PhaseBooting)
	conn, err := net.Dial("unix", filepath.Join(d.Runtime, qemucmd.SocketConsole.FileName()))
	if err != nil {
		t.Fatal(err)
	}
	console := tinyguest.NewConsole(conn)
	defer func() { _ = console.Close() }()
	if err := console.WaitReady(withPatience(t)); err != nil {
		t.Fatal(err)
	}
	command(t, console, "write vdb 0 before")

	// The file system as the runner sees it.
	seen := filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "root", small)
	filler := filepath.Join(seen, "filler")
	fill(t, filler)
	text := strings.Repeat("precious data ", 10)
	for n := range 16 {
		if err := console.Send("write vdb " + strconv.Itoa((1+n)<<20) + " " + text + strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	s := p.untilState(t, func(s State) bool { return condition(s, live.GuestExecuting).Reason == live.ReasonDiskFull })
	if got := condition(s, live.GuestExecuting); !s.Paused || got.Status != live.False || !strings.Contains(got.Message, " data (") || !strings.Contains(got.Message, c.Runner.VM.Drives[1].File) {
		t.Errorf("%+v", got)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.untilState(t, func(s State) bool { return !s.Paused && condition(s, live.GuestExecuting).Status == live.True })
	for n := range 16 {
		if _, err := console.Expect(withPatience(t), strconv.Itoa(len(text)+len(strconv.Itoa(n)))+" bytes written"); err != nil {
			t.Fatal(err)
		}
	}
	disk, err := os.ReadFile(filepath.Join(seen, "disk.img"))
	if err != nil || !strings.HasPrefix(string(disk), "before") {
		t.Fatalf("%d bytes, %v", len(disk), err)
	}
	for n := range 16 {
		want := text + strconv.Itoa(n)
		if got := string(disk[(1+n)<<20:][:len(want)]); got != want {
			t.Errorf("at %d MiB the disk holds %q", 1+n, got)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	nothingLeft(t, d)
}

// fill writes a file until there is no space left.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(chunk)
		if errors.Is(err, syscall.ENOSPC) && len(chunk) > 1 {
			chunk, err = chunk[:max(len(chunk)/2, 1)], nil
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
