package host

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
	"github.com/vmop/sdk/vmop/runner"
)

// runsWith is a machine whose sockets are served by what is given for them.
func runsWith(t *testing.T, purpose qemucmd.SocketPurpose, serve func(net.Conn)) *Machine {
	t.Helper()
	m := &Machine{Directories: Directories{Data: t.TempDir(), Runtime: t.TempDir()}, Namespace: "default", Name: "web"}
	l, err := net.Listen("unix", m.Socket(purpose))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends with the listener
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return m
}

// A machine is paused and goes on by its own methods, each of which has the monitor to
// itself and reports whether it has changed something.
func TestPauseResumeAndReset(t *testing.T) {
	var mu sync.Mutex // each connection has a server of its own
	state := qmp.RunStateRunning
	now := func() qmp.RunState {
		mu.Lock()
		defer mu.Unlock()
		return state
	}
	m := runsWith(t, qemucmd.SocketToolMonitor, func(conn net.Conn) {
		s := qmptest.Start(conn, qmptest.Options{Default: func(c *qmptest.Call) {
			mu.Lock()
			defer mu.Unlock()
			switch c.Name() {
			case "query-status":
				c.Return(qmp.Status{Running: state == qmp.RunStateRunning, Status: state})
				return
			case "stop":
				state = qmp.RunStatePaused
			case "cont":
				state = qmp.RunStateRunning
			case "system_reset":
				c.Return(nil)
				c.Server.Emit("RESET", map[string]any{"guest": false, "reason": "host-qmp-system-reset"})
				return
			}
			c.Return(nil)
		}})
		t.Cleanup(s.Close)
	})
	ctx := t.Context()
	for i, c := range []struct {
		do      func(context.Context) (bool, error)
		changed bool
		state   qmp.RunState
	}{
		{m.Pause, true, qmp.RunStatePaused},
		{m.Pause, false, qmp.RunStatePaused},
		{m.Resume, true, qmp.RunStateRunning},
		{m.Resume, false, qmp.RunStateRunning}, // which presses a key
		{m.Pause, true, qmp.RunStatePaused},
	} {
		if changed, err := c.do(ctx); err != nil || changed != c.changed || now() != c.state {
			t.Errorf("%d: %v, %v, and the guest is %s; want %v and %s", i, changed, err, now(), c.changed, c.state)
		}
	}
	if err := m.Reset(ctx); err != nil || now() != qmp.RunStateRunning {
		t.Errorf("%v; the guest is %s", err, now())
	}
	if picture, err := m.Screenshot(ctx, ScreenshotOptions{Output: 1}); err == nil || picture != nil || !strings.Contains(err.Error(), "screenshot of default/web: output 1") {
		t.Errorf("%d bytes, %v", len(picture), err)
	}
	stopped := &Machine{Directories: Directories{Runtime: t.TempDir()}, Namespace: "default", Name: "db"}
	if _, err := stopped.Pause(ctx); err == nil || !strings.Contains(err.Error(), "pause default/db: ") {
		t.Errorf("a machine that does not run: %v", err)
	}
}

// A guest whose disk is still full executes for a moment, and is not said to go on; which
// disk it is, is told.
func TestResumeOfAFullDisk(t *testing.T) {
	for _, free := range []bool{false, true} {
		var mu sync.Mutex
		state := qmp.RunStateIOError
		m := runsWith(t, qemucmd.SocketToolMonitor, func(conn net.Conn) {
			s := qmptest.Start(conn, qmptest.Options{Default: func(c *qmptest.Call) {
				mu.Lock()
				defer mu.Unlock()
				switch c.Name() {
				case "query-status":
					c.Return(qmp.Status{Running: state == qmp.RunStateRunning, Status: state})
					return
				case "cont":
					state = qmp.RunStateRunning
					if !free {
						time.AfterFunc(20*time.Millisecond, func() {
							mu.Lock()
							defer mu.Unlock()
							state = qmp.RunStateIOError
							c.Server.Emit("STOP", nil)
						})
					}
				}
				c.Return(nil)
			}})
			t.Cleanup(s.Close)
		})
		m.Status = StatusPaused
		m.State.Phase = runner.PhaseBooting
		m.State.Conditions = []live.Condition{{Type: live.GuestExecuting, Status: live.False, Reason: live.ReasonDiskFull, Message: "no space for disk0"}}
		changed, err := m.Resume(t.Context())
		if changed != free || (err == nil) != free || err != nil && err.Error() != "resume default/web: the guest does not go on: QEMU's run state is io-error: no space for disk0" {
			t.Errorf("free: %v; %v, %v", free, changed, err)
		}
	}
}

// A console is a connection to the runner.
func TestConsole(t *testing.T) {
	m := runsWith(t, qemucmd.SocketConsole, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "login: ")
		_ = conn.Close()
	})
	conn, err := m.Console(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if text, err := io.ReadAll(conn); string(text) != "login: " || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := (&Machine{Directories: Directories{Runtime: t.TempDir()}, Name: "db"}).Console(t.Context()); err == nil {
		t.Error("a machine that does not run has a console")
	}
}
