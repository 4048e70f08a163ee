package runner

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// With no inotify instance left, changes are noticed all the same, and it is said that
// they are noticed late.
func TestConfigurationIsFollowedWithoutInotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := func(cpus string) string {
		return "/Runner: {vm: {name: web, maximumCpus: 4, currentCpus: " + cpus + "}}\n"
	}
	put(t, path, text("1"))
	found, slow := make(chan int, 8), make(chan string, 8)
	f := ConfigFollower{
		Path: path, Content: []byte(text("1")),
		Config:  func(c runnerconfig.Config, _ []string) { found <- c.Runner.VM.CurrentCPUs },
		Refused: func(err error) { t.Error(err) },
		Changed: func() {},
		Slow:    func(err error) { slow <- err.Error() },
		watcher: func() (*fsnotify.Watcher, error) { return nil, os.NewSyscallError("inotify_init1", syscall.EMFILE) },
		pause:   time.Millisecond,
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Follow(ctx) }()
	if said := <-slow; !strings.Contains(said, "too many open files") {
		t.Errorf("said %q", said)
	}
	if err := os.WriteFile(path+".new", []byte(text("2")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-found:
		if got != 2 {
			t.Errorf("%d CPUs", got)
		}
	case <-time.After(patience):
		t.Error("the change was not noticed")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// tooManyFiles is a listener that cannot take its first connection at once.
type tooManyFiles struct {
	net.Listener
	failed bool
}

func (l *tooManyFiles) Accept() (net.Conn, error) {
	if !l.failed {
		l.failed = true
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// A viewer that cannot be taken, because the runner has too many files open, is taken
// later, and ends the console for nobody.
func TestConsoleOutlivesTooManyFiles(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "console"))
	if err != nil {
		t.Fatal(err)
	}
	c := &console{listener: &tooManyFiles{Listener: l}, viewers: map[*viewer]bool{}, past: []byte("login: ")}
	c.wg.Add(1)
	go c.accept()
	client, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	taken := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.viewers) == 1
	}
	for deadline := time.Now().Add(patience); !taken(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the viewer is not taken")
		}
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

func TestRuntimeDirectoryInAnotherUsersDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "user", "vmrunner")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Dir(dir)
	owners := func(other int) func(string) (int, error) {
		return func(d string) (int, error) {
			if real, err := filepath.EvalSymlinks(foreign); err == nil && d == real {
				return other, nil
			}
			return 0, nil
		}
	}
	if err := checkParents(dir, owners(4711)); err == nil || !strings.Contains(err.Error(), "belongs to the user 4711") {
		t.Errorf("got %v", err)
	}
	for _, own := range []int{0, os.Geteuid()} {
		if err := checkParents(dir, owners(own)); err != nil {
			t.Error(err)
		}
	}
	if err := checkParents(dir, ownerOf); err != nil {
		t.Error(err)
	}
}
