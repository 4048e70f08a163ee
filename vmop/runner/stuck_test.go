package runner

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// A QEMU that has told of its end and neither ends nor answers is stuck, but not
// before the guest's time to shut down is over. (QEMU 7.2 does so now and then when
// it is asked something while it ends.)
func TestStuckAtEnd(t *testing.T) {
	c := fakeConfig()
	timeout := time.Duration(*c.Runner.VM.PowerdownTimeout) * time.Second
	for _, tt := range []struct {
		name      string
		announced bool
		answers   bool
		revived   bool
		ends      time.Duration // 0 is never
		want      bool
		after     time.Duration
	}{
		{"it hangs", true, false, false, 0, true, timeout + commandDeadline},
		{"it was started again and is slow", true, false, true, 0, false, timeout + commandDeadline},
		{"it writes for long", true, false, false, timeout - time.Second, false, timeout - time.Second},
		{"it was told to stay", true, true, false, 0, false, timeout},
		{"it ends without a word", false, false, false, time.Hour, false, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := New(Options{Config: c, Directories: Directories{Data: filepath.Join("/none", "data"), Runtime: filepath.Join("/none", "run")}})
				if err != nil {
					t.Fatal(err)
				}
				near, fake := qmptest.Pipe(qmptest.Options{Handlers: map[string]qmptest.Handler{
					"query-status": func(c *qmptest.Call) {
						if tt.answers {
							c.Return(map[string]any{"status": "shutdown", "running": false})
						}
					},
				}})
				defer fake.Close()
				client, err := qmp.NewClient(t.Context(), near, qmp.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				m := &machine{client: client, qemu: &child{done: make(chan struct{})}}
				if tt.ends > 0 {
					time.AfterFunc(tt.ends, func() { close(m.qemu.done) })
				}
				if tt.announced {
					e.announced()
				}
				if tt.revived {
					if err := e.happened(qmp.Event{Name: "RESUME"}); err != nil {
						t.Error(err)
					}
				}
				begin := time.Now()
				if got := e.stuckAtEnd(m); got != tt.want {
					t.Errorf("stuck: %v, want %v", got, tt.want)
				}
				if d := time.Since(begin); d != tt.after {
					t.Errorf("after %v, want %v", d, tt.after)
				}
			})
		})
	}
}
