package kubernetes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runner/vmstatus"
)

// fakeAPI stands for an API server that is slow, away, or without the machine:
// what a real one is not on demand.
type fakeAPI struct {
	mu       sync.Mutex
	err      error // of every request
	uid      string
	statuses []*vmstatus.Status
	events   []string
	calls    int
	// conflicts is how often somebody else comes first.
	conflicts int
	// timeout and force are what the machine says of its stop.
	timeout int64
	force   string
}

func (f *fakeAPI) begin() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.err
}

func (f *fakeAPI) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeAPI) Machine(context.Context) (Machine, error) {
	err := f.begin()
	f.mu.Lock()
	defer f.mu.Unlock()
	return Machine{UID: f.uid + "x", ResourceVersion: "2", PowerdownTimeout: f.timeout, ForceStop: f.force}, err
}

func (f *fakeAPI) ApplyStatus(_ context.Context, m Machine, status *vmstatus.Status) error {
	if err := f.begin(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conflicts > 0 && m.ResourceVersion != "" {
		f.conflicts--
		return ErrConflict
	}
	f.statuses = append(f.statuses, status)
	return nil
}

func (f *fakeAPI) CreateEvent(_ context.Context, _ string, e Event) error {
	if err := f.begin(); err != nil {
		return err
	}
	if e.Reason == "Unwanted" {
		return ErrRefused
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, e.Reason)
	return nil
}

func (f *fakeAPI) CloseIdle() {}

// lines are what a reporter logs.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) log(_ runner.Level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, text)
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

func cpus(n int) runner.State { return runner.State{Phase: runner.PhaseBooting, CPUs: n, RAM: 1 << 30} }

func TestWhatHappensAtOnceIsOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, log := &fakeAPI{}, &lines{}
		r := NewReporter(api, log.log)
		for n := 1; n <= 5; n++ {
			r.State(cpus(n))
		}
		synctest.Wait()
		for n := 6; n <= 9; n++ {
			r.State(cpus(n))
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		r.State(cpus(9)) // nothing new
		synctest.Wait()
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if len(api.statuses) != 2 || api.statuses[1].CPUs != 9 {
			t.Errorf("wrote %v", api.statuses)
		}
		if api.calls != 3 || log.count() != 0 {
			t.Errorf("%d requests, log %v", api.calls, log.all)
		}
	})
}

func TestAnAPIThatIsAwayIsToldLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, log := &fakeAPI{err: errors.New("connection refused")}, &lines{}
		r := NewReporter(api, log.log)
		begin := time.Now()
		for n := range maxEvents + 3 {
			r.State(cpus(n + 1))
			r.Message(runner.Message{Time: time.Now(), Event: &live.Event{Action: live.ActionStatus, Reason: "R"}})
			r.Message(runner.Message{Time: time.Now(), Text: "not an event"})
			time.Sleep(10 * time.Second)
		}
		synctest.Wait() // the next attempt may be due now
		attempts := api.calls
		if most := int(time.Since(begin)/lastRetry) + 8; attempts > most {
			t.Errorf("%d attempts in %v, want at most %d", attempts, time.Since(begin), most)
		}
		if log.count() != 2 { // that it is away, and that events were lost
			t.Errorf("log %v", log.all)
		}
		api.fail(nil)
		time.Sleep(2 * lastRetry)
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(api.statuses); n != 1 || api.statuses[0].CPUs != maxEvents+3 {
			t.Errorf("wrote %v", api.statuses)
		}
		if len(api.events) != maxEvents {
			t.Errorf("%d events", len(api.events))
		}
	})
}

func TestTheEndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		r := NewReporter(api, (&lines{}).log)
		r.State(cpus(1))
		synctest.Wait()
		api.conflicts = 2
		r.State(runner.State{Phase: runner.PhaseStopped, CPUs: 1})
		r.Message(runner.Message{Time: time.Now(), Event: &live.Event{Reason: "VmStopped"}})
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(api.statuses); n != 2 || api.statuses[1].CPUs != 0 || !slices.Equal(api.events, []string{"VmStopped"}) {
			t.Errorf("wrote %v and %v", api.statuses, api.events)
		}
	})
}

// The status of a machine that has taken the name is not this runner's.
func TestTheEndOfAMachineThatWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, log := &fakeAPI{uid: "1"}, &lines{}
		r := NewReporter(api, log.log)
		r.State(cpus(1))
		synctest.Wait()
		api.mu.Lock()
		api.uid = "2"
		api.mu.Unlock()
		r.State(runner.State{Phase: runner.PhaseStopped})
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if len(api.statuses) != 1 || log.count() != 1 {
			t.Errorf("wrote %v, log %v", api.statuses, log.all)
		}
	})
}

func TestARefusedEventHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, log := &fakeAPI{}, &lines{}
		r := NewReporter(api, log.log)
		for _, reason := range []string{"VmStarted", "Unwanted", "VmBooted"} {
			r.Message(runner.Message{Time: time.Now(), Event: &live.Event{Reason: reason}})
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !slices.Equal(api.events, []string{"VmStarted", "VmBooted"}) || log.count() != 1 {
			t.Errorf("events %v, log %v", api.events, log.all)
		}
	})
}

func TestTheEndWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{err: errors.New("connection refused")}
		r := NewReporter(api, (&lines{}).log)
		r.State(cpus(1))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if d := time.Since(begin); d > 11*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

func TestAMachineThatIsGoneIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, log := &fakeAPI{err: ErrGone}, &lines{}
		r := NewReporter(api, log.log)
		for n := range 5 {
			r.State(cpus(n + 1))
			time.Sleep(time.Minute)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if api.calls != 1 || log.count() != 1 {
			t.Errorf("%d requests, log %v", api.calls, log.all)
		}
	})
}

// Times of conditions are those of their last change, also over the runner's
// restart, and never a write by themselves.
func TestTimesOfConditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Unix(1e9, 0).UTC()
		known := vmstatus.Transitions{}
		status := map[string]live.Status{}
		changed := map[string]time.Time{}
		for n := range rapid.IntRange(1, 20).Draw(t, "reports") {
			now := begin.Add(time.Duration(n) * time.Minute)
			s := runner.State{Phase: runner.PhaseBooting}
			for _, kind := range []string{live.GuestExecuting, live.ResetDone} {
				v := rapid.SampledFrom([]live.Status{live.True, live.False, live.Unknown}).Draw(t, kind)
				if status[kind] != v {
					status[kind], changed[kind] = v, now
				}
				s.Conditions = append(s.Conditions, live.Condition{Type: kind, Status: v})
			}
			part, next := vmstatus.Of(&s, known, now)
			for _, c := range part.Conditions {
				if want := changed[c.Type]; !c.LastTransitionTime.Equal(want) {
					t.Fatalf("%s since %v, want %s", c.Type, c.LastTransitionTime, want)
				}
			}
			if again, _ := vmstatus.Of(&s, next, now.Add(time.Hour)); !slices.EqualFunc(again.Conditions, part.Conditions, func(a, b vmstatus.Condition) bool {
				return a.LastTransitionTime.Equal(b.LastTransitionTime)
			}) {
				t.Fatal("the same state has other times")
			}
			known = next
		}
	})
}

// The API server refuses an event with a longer note or reason for ever, and the
// events behind it would wait for it.
func TestEventsFitTheAPI(t *testing.T) {
	e := newEvent(live.Event{Reason: strings.Repeat("ä", 300), Note: "x" + strings.Repeat("ä", 3000)}, time.Unix(1e9, 0), 1)
	o := e.object("default", "web", "1")
	for key, most := range map[string]int{"reason": 128, "note": 1024} {
		if text := o[key].(string); len(text) > most || len(text) < most-4 || !utf8.ValidString(text) {
			t.Errorf("the %s has %d bytes, want at most %d of UTF-8", key, len(text), most)
		}
	}
}

// Whoever lowers the power-down timeout of a machine that is being stopped, or does
// not want to wait for its guest any more, is heard; a machine that runs costs no look.
func TestHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type told struct {
			seconds int64
			force   bool
		}
		api := &fakeAPI{timeout: 900, force: "of the run before"}
		r := NewReporter(api, func(runner.Level, string) {})
		var heard []told
		r.OnHurry(func(seconds int64, force bool) { heard = append(heard, told{seconds, force}) })
		r.State(runner.State{Phase: runner.PhaseBooting})
		time.Sleep(time.Hour)
		synctest.Wait()
		api.mu.Lock()
		if api.calls != 2 || len(heard) > 0 {
			t.Errorf("a machine that runs: %d requests, heard %v", api.calls, heard)
		}
		api.mu.Unlock()
		r.State(runner.State{Phase: runner.PhaseTerminating})
		time.Sleep(15 * time.Second)
		synctest.Wait()
		for _, h := range heard {
			if h != (told{900, false}) {
				t.Errorf("nobody hurries, but %v", h)
			}
		}
		if n := len(heard); n == 0 || n > 5 {
			t.Errorf("%d looks", n)
		}
		api.mu.Lock()
		api.timeout, api.force = 5, "now"
		api.mu.Unlock()
		time.Sleep(lastLook)
		synctest.Wait()
		if last := heard[len(heard)-1]; last != (told{5, true}) {
			t.Errorf("heard %v", last)
		}
		r.State(runner.State{Phase: runner.PhaseStopped})
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A machine that was deleted without its pod is reported to again when another one of
// the name has taken the pod over, with all that there is to say; one that only has the
// name gets nothing.
func TestAnotherMachineTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, log := &fakeAPI{uid: "old"}, &lines{}
		r := NewReporter(api, log.log)
		state := runner.State{Phase: runner.PhaseBooting, CPUs: 1, RunnerVersion: "v1"}
		statuses := func() int {
			synctest.Wait()
			api.mu.Lock()
			defer api.mu.Unlock()
			return len(api.statuses)
		}
		set := func(uid string) {
			api.mu.Lock()
			defer api.mu.Unlock()
			api.uid = uid
		}
		tell := func(change func()) {
			change()
			r.State(state)
			time.Sleep(5 * time.Minute)
		}
		tell(func() {})
		before := statuses()
		api.fail(ErrGone)
		tell(func() { state.CPUs = 2 })
		api.fail(nil)
		set("new")
		tell(func() { state.CPUs = 3 })
		if n := statuses(); before != 1 || n != before {
			t.Errorf("%d statuses, then %d for a machine that only has the name", before, n)
		}
		// The configuration is of one that has gone again.
		tell(func() { state.MachineUID = "between" })
		if n := statuses(); n != before {
			t.Errorf("%d statuses", n)
		}
		tell(func() { state.MachineUID = "newx" }) // as the fake has it
		if n := statuses(); n != before+1 {
			t.Errorf("%d statuses; want the new machine's first", n)
		}
		tell(func() { state.CPUs = 4 })
		if n := statuses(); n != before+2 {
			t.Errorf("%d statuses; want another one", n)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
