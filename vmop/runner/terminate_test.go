package runner

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// A QEMU that does not quit is ended by a signal that it can act upon; only one that
// does not listen to that either is killed. Whoever is in a hurry does not wait for it.
func TestTermBeforeKill(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script string
		hurry  bool
		want   syscall.Signal // 0: it ends by itself
	}{
		{"it listens to signals", `trap "exit 0" TERM; echo ready; while :; do sleep 0.02; done`, false, 0},
		{"it listens to nothing", `trap "" TERM; echo ready; while :; do sleep 0.02; done`, false, syscall.SIGKILL},
		{"somebody is in a hurry", `trap "" TERM; echo ready; while :; do sleep 0.02; done`, true, syscall.SIGKILL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, err := New(Options{Config: fakeConfig(), Directories: Directories{Data: filepath.Join("/none", "data"), Runtime: filepath.Join("/none", "run")}})
			if err != nil {
				t.Fatal(err)
			}
			near, fake := qmptest.Pipe(qmptest.Options{Handlers: map[string]qmptest.Handler{
				"quit": func(c *qmptest.Call) { c.Fail("GenericError", "not now") },
			}})
			defer fake.Close()
			client, err := qmp.NewClient(t.Context(), near, qmp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			ready := make(chan struct{}, 1)
			qemu, err := startChild("QEMU", "/bin/sh", []string{"-c", tt.script}, nil, func(string, string) { ready <- struct{}{} })
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-ready:
			case <-withPatience(t).Done():
				t.Fatal("it does not start")
			}
			ask, asked := context.WithCancel(t.Context())
			asked()
			hurry := t.Context()
			if tt.hurry {
				hurry = ask
			}
			if forced, err := e.powerDown(ask, hurry, &machine{client: client, qemu: qemu}); err != nil || !forced {
				t.Errorf("forced: %v, %v", forced, err)
			}
			status := qemu.status.Sys().(syscall.WaitStatus)
			switch {
			case tt.want == 0 && !qemu.status.Success():
				t.Errorf("it ended: %v", qemu.status)
			case tt.want != 0 && (!status.Signaled() || status.Signal() != tt.want):
				t.Errorf("it ended: %v, want %v", qemu.status, tt.want)
			}
		})
	}
}
