package runner

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// reporterFunc is a reporter of states and messages.
type reporterFunc struct {
	state   func(State)
	message func(Message)
}

func (r *reporterFunc) State(s State) {
	if r.state != nil {
		r.state(s)
	}
}

func (r *reporterFunc) Message(m Message) {
	if r.message != nil {
		r.message(m)
	}
}

// idleEngine is an engine that was not started.
func idleEngine(t *testing.T, r Reporter) *Engine {
	t.Helper()
	c := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "test"}}}
	runnerconfig.Default(&c)
	e, err := New(Options{Config: c, Directories: Directories{Data: "/d", Runtime: "/r"}, Reporter: r})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A reporter may look at the engine and stop it, and one that takes long holds nobody up
// who only looks, QEMU's events among them.
func TestTheEngineIsFreeWhileItReports(t *testing.T) {
	reporting, goOn := make(chan struct{}), make(chan struct{})
	const slow = "something slow"
	r := &reporterFunc{message: func(m Message) {
		if m.Text == slow {
			close(reporting)
			<-goOn
		}
	}}
	e := idleEngine(t, r)
	r.state = func(s State) {
		if now := e.State(); now.Phase != s.Phase {
			t.Errorf("the engine is %s, and %s was reported", now.Phase, s.Phase)
		}
		e.Stop()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.enter(PhaseStarting, "starting")
		e.message(LevelInfo, slow)
	}()
	within := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(patience):
			t.Fatalf("%s: it hangs", what)
		}
	}
	within("the report of the state", reporting)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		_ = e.State()
		e.change(func(w *desired) { w.console = true })
	}()
	within("a look during a report", looked)
	close(goOn)
	within("the report of the message", done)
	if e.stops[stopAsk].Err() == nil {
		t.Error("it was not stopped")
	}
}

// States come in the order of their changes, one call at a time, and each before who caused it
// goes on.
func TestReportsKeepTheirOrder(t *testing.T) {
	var calling sync.Mutex
	var last atomic.Int64
	r := &reporterFunc{state: func(s State) {
		if !calling.TryLock() {
			t.Error("two calls at a time")
			return
		}
		defer calling.Unlock()
		if before := last.Swap(int64(s.ConfigGeneration)); before != int64(s.ConfigGeneration)-1 {
			t.Errorf("%d after %d", s.ConfigGeneration, before)
		}
	}}
	e := idleEngine(t, r)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				mine := 0
				e.update(func(s *State) { s.ConfigGeneration++; mine = s.ConfigGeneration })
				if last.Load() < int64(mine) {
					t.Errorf("%d was not reported when its cause went on", mine)
				}
			}
		})
	}
	all.Wait()
	if n := last.Load(); n != 800 {
		t.Errorf("%d states", n)
	}
}
