package runner

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// fakeQEMU answers what a follower asks. It does the faults that the real one does
// not do on demand.
type fakeQEMU struct {
	*qmptest.Server

	mu      sync.Mutex
	balloon int64
	medium  string
	rounds  int  // observations
	deaf    bool // it never answers "balloon"
	idle    bool // it answers "balloon" and does nothing
	silent  bool // it answers nothing
	waits   bool // its guest was not let go yet
	onCont  func()
}

const fakeRAM = 512 << 20

func (q *fakeQEMU) answer(value func() any) qmptest.Handler {
	return func(c *qmptest.Call) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if !q.silent {
			c.Return(value())
		}
	}
}

// followFake is an engine that follows a fake QEMU.
func followFake(t *testing.T, c runnerconfig.Config) (*running, *fakeQEMU) {
	t.Helper()
	e, log, client, q := connectFake(t, c)
	f, err := e.newFollower(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Engine: e, log: log, done: make(chan struct{}), cancel: cancel}
	m := &machine{client: client, events: client.Subscribe(64), rareEvents: client.Subscribe(64, rareEvents...)}
	var both sync.WaitGroup
	both.Go(func() { e.watchAll(m) })
	both.Go(func() { f.follow(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = client.Close()
		both.Wait()
	})
	return r, q
}

// connectFake is an engine that is connected to a fake QEMU.
func connectFake(t *testing.T, c runnerconfig.Config) (*Engine, *recorder, *qmp.Client, *fakeQEMU) {
	t.Helper()
	log := &recorder{t: t}
	e, err := New(Options{Config: c, Directories: Directories{Data: filepath.Join("/none", "data"), Runtime: filepath.Join("/none", "run")}, Reporter: log, Host: qemucmd.Host{BlockDrivers: []string{"http", "https"}}})
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	q := &fakeQEMU{balloon: fakeRAM}
	q.Server = qmptest.Start(far, qmptest.Options{Handlers: map[string]qmptest.Handler{
		"query-memory-size-summary": q.answer(func() any { return map[string]int64{"base-memory": fakeRAM} }),
		"query-status": q.answer(func() any {
			q.rounds++
			if q.waits {
				return map[string]any{"status": "prelaunch", "running": false}
			}
			return map[string]any{"status": "running", "running": true}
		}),
		"cont": q.answer(func() any {
			if q.waits = false; q.onCont != nil {
				q.onCont()
			}
			return nil
		}),
		"query-hotpluggable-cpus": q.answer(func() any { return []any{} }),
		"query-balloon":           q.answer(func() any { return map[string]int64{"actual": q.balloon} }),
		"query-block": q.answer(func() any {
			return []any{map[string]any{
				"device": "", "qdev": "/machine/peripheral/cd0", "type": "unknown", "removable": true, "locked": false, "tray_open": false,
				"inserted": map[string]any{"file": q.medium, "node-name": "x", "drv": "raw"},
			}}
		}),
		"qom-get": q.answer(func() any { return map[string]int64{"last-update": 1} }),
		"balloon": func(c *qmptest.Call) {
			q.mu.Lock()
			defer q.mu.Unlock()
			if q.deaf || q.silent {
				return
			}
			var to struct{ Value int64 }
			_ = c.Arguments(&to)
			if !q.idle {
				q.balloon = to.Value
			}
			c.Return(nil)
		},
		"blockdev-change-medium": func(c *qmptest.Call) {
			q.mu.Lock()
			defer q.mu.Unlock()
			var to struct{ Filename string }
			_ = c.Arguments(&to)
			q.medium = to.Filename
			c.Return(nil)
		},
		"blockdev-del": q.answer(func() any { return nil }),
	}})
	t.Cleanup(q.Close)
	client, err := qmp.NewClient(t.Context(), near, qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return e, log, client, q
}

func fakeConfig() runnerconfig.Config {
	timeout := int64(60)
	c := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{
		Name: "test", Firmware: "bios", MaximumRAM: fakeRAM, PowerdownTimeout: &timeout,
		Drives: []runnerconfig.Drive{{Type: runnerconfig.DriveCD}},
	}}}
	runnerconfig.Default(&c)
	return c
}

// someImage is a CD that is no file: the connection to the fake cannot pass any.
const someImage = "http://example.org/image.iso"

// A guest that floods its host with events is looked at again and again, but not
// once for each; the events that matter are not lost among them, and what is
// desired happens.
func TestFloodOfEvents(t *testing.T) {
	c, image := fakeConfig(), someImage
	r, q := followFake(t, c)
	const flood = 20000
	for n := range flood {
		size := fakeRAM - int64(n%1000)<<12
		q.mu.Lock()
		q.balloon = size
		q.mu.Unlock()
		name, data := "BALLOON_CHANGE", map[string]any{"actual": size}
		if n%2 == 1 {
			name, data = "DEVICE_TRAY_MOVED", map[string]any{"device": "", "id": "cd0", "tray-open": n%4 == 1}
		}
		if !q.Emit(name, data) {
			t.Fatal("the connection is gone")
		}
		if n == flood/2 {
			q.Emit("SHUTDOWN", map[string]any{"guest": true, "reason": "guest-shutdown"})
			r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.Drives[0].File = image })
		}
	}
	r.now(t, "the medium is changed", reason(live.MediaChanged, live.ReasonAsConfigured))
	r.now(t, "the balloon has its size", func(s State) bool { return s.RAM == fakeRAM && condition(s, live.MemoryAdjusted).Status == live.True })
	r.mu.Lock()
	if r.end.shutdown == nil || !r.end.shutdown.Guest {
		t.Error("the shutdown was lost")
	}
	r.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rounds > flood/2 {
		t.Errorf("%d observations after %d events", q.rounds, flood)
	}
	t.Logf("%d observations after %d events", q.rounds, flood)
}

// A command that is never answered holds the rest back until its deadline, and
// then no longer; calls of the engine wait for none.
func TestCommandWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, image := fakeConfig(), someImage
		r, q := followFake(t, c)
		synctest.Wait()
		q.mu.Lock()
		q.deaf = true
		q.mu.Unlock()
		begin := time.Now()
		r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentRAM, r.VM.Drives[0].File = 256<<20, image })
		r.Pause()
		r.Resume()
		if d := time.Since(begin); d > 0 {
			t.Errorf("the calls took %v", d)
		}
		r.now(t, "the medium is changed", reason(live.MediaChanged, live.ReasonAsConfigured))
		if d := time.Since(begin); d > commandDeadline+time.Second {
			t.Errorf("it took %v", d)
		}
		s := <-r.log.wait(reason(live.MemoryAdjusted, live.ReasonRefused))
		if d := time.Since(begin); d > 10*time.Minute {
			t.Errorf("%+v after %v", s, d)
		}
		// Whoever ends the machine does not wait for a QEMU that hangs.
		q.mu.Lock()
		q.silent = true
		q.mu.Unlock()
		r.rereadDisplaySecret()
		synctest.Wait()
		begin = time.Now()
		r.cancel()
		synctest.Wait()
		if d := time.Since(begin); d > 0 {
			t.Errorf("the end took %v", d)
		}
	})
}

// A balloon on its way is reported every 15 seconds, and at once when it is there.
func TestBalloonIsReportedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeConfig()
		r, q := followFake(t, c)
		synctest.Wait()
		q.mu.Lock()
		q.idle = true // the guest takes its time
		q.mu.Unlock()
		begin := time.Now()
		r.reconfigure(t, &c, func(r *runnerconfig.Runner) { r.VM.CurrentRAM = 256 << 20 })
		for size := int64(fakeRAM); size >= 256<<20; size -= 4 << 20 {
			q.mu.Lock()
			q.balloon = size
			q.mu.Unlock()
			q.Emit("BALLOON_CHANGE", map[string]any{"actual": size})
			time.Sleep(time.Second)
		}
		r.until(t, "it is there", func(s State) bool { return s.RAM == 256<<20 })
		sizes := map[int64]bool{}
		r.log.mu.Lock()
		for _, s := range r.log.states {
			sizes[s.RAM] = true
		}
		r.log.mu.Unlock()
		// The end, and one for each 15 seconds of the way.
		if most := int(time.Since(begin)/(15*time.Second)) + 3; len(sizes) > most || len(sizes) < 3 {
			t.Errorf("%d sizes were reported in %v, want at most %d", len(sizes), time.Since(begin), most)
		}
	})
}
