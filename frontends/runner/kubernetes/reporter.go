package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runner/vmstatus"
)

// API is what a reporter needs of the Kubernetes API. [Client] implements it.
type API interface {
	// Machine reads the machine's identity and its present status.
	Machine(context.Context) (Machine, error)
	// ApplyStatus writes the runner's part of the machine's status. If m has a resource version
	// that is no longer the machine's, the error is [ErrConflict].
	ApplyStatus(ctx context.Context, m Machine, status *vmstatus.Status) error
	// CreateEvent stores an event about the machine with that UID. If the event already exists,
	// that is not an error.
	CreateEvent(ctx context.Context, uid string, e Event) error
	// CloseIdle closes unused connections.
	CloseIdle()
}

// Machine is what is stored about the machine.
type Machine struct {
	UID string
	// ResourceVersion is that of the machine when it was read.
	ResourceVersion string
	Conditions      []vmstatus.Condition
	// PowerdownTimeout is how long its guest may take to shut down, in seconds; negative means
	// unknown.
	PowerdownTimeout int64
	// ForceStop is the last request to stop it without waiting for the guest; empty if there was
	// none.
	ForceStop string
}

// The errors of an [API].
var (
	// ErrGone means that the machine does not exist any more, or was replaced by another one of the
	// same name.
	ErrGone = errors.New("the machine was deleted")
	// ErrRefused means that the API permanently refuses an event.
	ErrRefused = errors.New("refused")
	// ErrConflict means that another client has written the machine.
	ErrConflict = errors.New("the machine has changed")
)

// Deadlines of a [Reporter].
const (
	requestTimeout = 10 * time.Second
	// pause is the minimum between two writes of the status; changes in between are written
	// together. A guest can cause endless changes, for example by restarting its agents: after
	// freeWrites the pause doubles up to maxPause with each write, until the status has not changed
	// for maxPause.
	pause      = time.Second
	maxPause   = time.Minute
	freeWrites = 10
	firstRetry = time.Second
	lastRetry  = time.Minute
	maxEvents  = 100
	// firstLook is when the machine is read again while its guest is asked to shut down; it doubles
	// up to lastLook. Nothing else reaches the runner then: the kubelet no longer updates the
	// mounted files of a pod that is being deleted.
	firstLook = 2 * time.Second
	lastLook  = 10 * time.Second
)

// Reporter is a [runner.Reporter] that never blocks and never fails: a goroutine of its own passes
// on what is reported to it.
type Reporter struct {
	api API
	log func(runner.Level, string)

	cancel context.CancelFunc
	ended  chan struct{}
	wake   chan struct{}

	mu      sync.Mutex
	hurry   func(seconds int64, force bool)
	state   *runner.State
	events  []Event
	count   int
	lost    int
	closing bool
}

// NewReporter starts a reporter. It calls log, which must not call back, at the first failure and
// when reporting works again. Close ends it.
func NewReporter(api API, log func(runner.Level, string)) *Reporter {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Reporter{api: api, log: log, cancel: cancel, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	go func() {
		defer close(r.ended)
		(&sender{r: r}).run(ctx)
	}()
	return r
}

// OnHurry has the function called, while the machine is being stopped, with the present timeout of
// its guest and whether to stop waiting for it: [runner.Engine.Hurry] is such a function. A request
// to force the machine that existed when it was first read does not concern this run.
func (r *Reporter) OnHurry(hurry func(seconds int64, force bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hurry = hurry
}

// State implements [runner.Reporter].
func (r *Reporter) State(s runner.State) {
	r.mu.Lock()
	r.state = &s
	r.mu.Unlock()
	r.notify()
}

// Message implements [runner.Reporter]. Only events are passed on; other messages are for the pod's
// log.
func (r *Reporter) Message(m runner.Message) {
	if m.Event == nil {
		return
	}
	r.mu.Lock()
	if len(r.events) == maxEvents {
		r.events, r.lost = r.events[1:], r.lost+1
	}
	r.count++
	r.events = append(r.events, newEvent(*m.Event, m.Time, r.count))
	r.mu.Unlock()
	r.notify()
}

func (r *Reporter) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Close reports what is still unreported, as long as ctx allows, and ends the reporter. Its error
// says what was not reported.
func (r *Reporter) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	r.notify()
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		r.cancel()
		<-r.ended
		return fmt.Errorf("the Kubernetes API was not told the end of the machine: %w", context.Cause(ctx))
	}
}

func (r *Reporter) take() (state *runner.State, events []Event, closing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost > 0 {
		r.log(runner.LevelWarning, fmt.Sprintf("%d events were lost because the Kubernetes API was away", r.lost))
		r.lost = 0
	}
	return r.state, slices.Clone(r.events), r.closing
}

func (r *Reporter) isClosing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing
}

func (r *Reporter) sent(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) > 0 && r.events[0].Name == e.Name {
		r.events = r.events[1:]
	}
}

type sender struct {
	r       *Reporter
	uid     string
	named   string // the machine that the configuration last named
	since   vmstatus.Transitions
	written *vmstatus.Status
	failing bool
	pauses  pauses
	// forced is the request to force the machine that existed at the start.
	forced string
	look   time.Duration
}

// heard passes on the machine's stop settings while it is being stopped.
func (s *sender) heard(m Machine) {
	s.r.mu.Lock()
	hurry, stopping := s.r.hurry, s.r.state != nil && s.r.state.Phase == runner.PhaseTerminating
	s.r.mu.Unlock()
	if hurry != nil && stopping && m.UID == s.uid {
		hurry(m.PowerdownTimeout, m.ForceStop != "" && m.ForceStop != s.forced)
	}
}

// idle waits for something to report. While the machine is being stopped it reads the machine at
// intervals.
func (s *sender) idle(ctx context.Context, state *runner.State) {
	if state == nil || state.Phase != runner.PhaseTerminating || s.uid == "" {
		s.woken(ctx)
		return
	}
	s.look = min(max(2*s.look, firstLook), lastLook)
	wait, cancel := context.WithTimeout(ctx, s.look)
	woken := s.woken(wait)
	cancel()
	if woken || ctx.Err() != nil {
		return
	}
	// A failed read is repeated at the next interval.
	if m, err := request(ctx, s.r.api.Machine); err == nil {
		s.heard(m)
	}
}

// pauses determines the pause after a write of the status.
type pauses struct {
	next   time.Duration
	last   time.Time
	writes int
}

func (p *pauses) after(now time.Time) time.Duration {
	if p.next == 0 || now.Sub(p.last) > p.next+maxPause {
		p.next, p.writes = pause, 0
	}
	if p.writes++; p.writes > freeWrites {
		p.next = min(2*p.next, maxPause)
	}
	p.last = now
	return p.next
}

func urgent(before, now *runner.State) bool {
	return before.Phase != now.Phase || before.Generation != now.Generation || before.ConfigGeneration != now.ConfigGeneration ||
		before.CPUs != now.CPUs || before.DisplayPasswordSerial != now.DisplayPasswordSerial
}

func (s *sender) run(ctx context.Context) {
	retry := firstRetry
	for {
		state, events, closing := s.r.take()
		status, err := s.send(ctx, state, events)
		switch {
		case errors.Is(err, ErrGone):
			s.r.log(runner.LevelWarning, fmt.Sprintf("nothing is reported to the Kubernetes API any more: %v", err))
			if !s.taken(ctx) {
				return
			}
			s.r.log(runner.LevelInfo, "another machine of the name has taken over this one, and is reported to")
			continue
		case ctx.Err() != nil:
			return
		case err != nil:
			if !s.failing {
				s.failing = true
				s.r.log(runner.LevelWarning, fmt.Sprintf("the Kubernetes API is not told about the machine, which runs on: %v; trying again", err))
			}
			if closing {
				retry = firstRetry
			}
			if !s.rest(ctx, retry, closing) {
				return
			}
			retry = min(2*retry, lastRetry)
			continue
		}
		retry = firstRetry
		if s.failing {
			s.failing = false
			s.r.log(runner.LevelInfo, "the Kubernetes API is told about the machine again")
		}
		if status && !closing {
			// Changes in quick succession go into one write.
			if !s.restAfter(ctx, state) {
				return
			}
			continue
		}
		s.r.api.CloseIdle()
		if closing && !status && len(events) == 0 {
			return
		}
		if closing {
			continue
		}
		if s.idle(ctx, state); ctx.Err() != nil {
			return
		}
	}
}

// taken waits until another machine of the same name has taken over this one, as its configuration
// then says, and reports whether that happened before the end.
func (s *sender) taken(ctx context.Context) bool {
	s.r.api.CloseIdle()
	for {
		state, _, closing := s.r.take()
		switch {
		case closing:
			return false
		case s.moved(state):
			return true
		}
		if !s.woken(ctx) {
			return false
		}
	}
}

// moved reports whether the configuration names another machine than the one that is reported to.
// Everything is then reported to it anew.
func (s *sender) moved(state *runner.State) bool {
	if state == nil || state.MachineUID == "" || state.MachineUID == s.named || state.MachineUID == s.uid {
		return false
	}
	s.named = state.MachineUID
	s.uid, s.since, s.written, s.forced = "", nil, nil, ""
	return true
}

// rest waits before the next request. The reporter's closing cuts it short, unless closing is
// already known.
func (s *sender) rest(ctx context.Context, d time.Duration, closing bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-s.r.wake:
			if !closing && s.r.isClosing() {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

// restAfter pauses after a status was written. Changes that the guest has not caused end the pause.
func (s *sender) restAfter(ctx context.Context, written *runner.State) bool {
	began := time.Now()
	d := s.pauses.after(began)
	if !s.rest(ctx, min(d, pause), false) {
		return false
	}
	for time.Since(began) < d {
		state, _, closing := s.r.take()
		if closing || urgent(written, state) {
			break
		}
		ctx, cancel := context.WithTimeout(ctx, d-time.Since(began))
		woken := s.woken(ctx)
		cancel()
		if !woken {
			break
		}
	}
	return ctx.Err() == nil
}

func (s *sender) woken(ctx context.Context) bool {
	select {
	case <-s.r.wake:
		return true
	case <-ctx.Done():
		return false
	}
}

// send sends the API what it does not have yet, the status first. It reports whether it wrote the
// status.
func (s *sender) send(ctx context.Context, state *runner.State, events []Event) (wrote bool, err error) {
	if state == nil && len(events) == 0 {
		return false, nil
	}
	s.moved(state)
	if s.uid == "" {
		m, err := request(ctx, s.r.api.Machine)
		if err != nil {
			return false, err
		}
		if s.named != "" && m.UID != s.named {
			return false, fmt.Errorf("%w, and there is another one of its name", ErrGone)
		}
		s.uid, s.since, s.forced = m.UID, vmstatus.NewTransitions(m.Conditions), m.ForceStop
	}
	if state != nil {
		status, since := vmstatus.Of(state, s.since, time.Now())
		if s.written == nil || !reflect.DeepEqual(status, *s.written) {
			if err := s.apply(ctx, state, &status); err != nil {
				return false, err
			}
			s.written, s.since, wrote = &status, since, true
		}
	}
	for _, e := range events {
		err := withTimeout(ctx, func(ctx context.Context) error { return s.r.api.CreateEvent(ctx, s.uid, e) })
		if errors.Is(err, ErrRefused) {
			// It would be refused each time, and block the events that follow.
			s.r.log(runner.LevelWarning, fmt.Sprintf("the event %q is not recorded: %v", e.Reason, err))
			err = nil
		}
		if err != nil {
			return wrote, err
		}
		s.r.sent(e)
	}
	return wrote, nil
}

// apply writes the status. The machine's end may be due to the deletion of its resource, and
// another one of its name may exist by then, whose status this runner must not write. The API
// server does not check the UID when a status is applied; it checks the version.
func (s *sender) apply(ctx context.Context, state *runner.State, status *vmstatus.Status) error {
	to := Machine{UID: s.uid}
	ending := state.Phase == runner.PhaseTerminating || state.Phase == runner.PhaseStopped
	const attempts = 5
	for n := 1; ; n++ {
		if ending {
			now, err := request(ctx, s.r.api.Machine)
			if err != nil {
				return err
			}
			if now.UID != s.uid {
				return fmt.Errorf("%w, and there is another one of its name", ErrGone)
			}
			to.ResourceVersion = now.ResourceVersion
			s.heard(now)
		}
		err := withTimeout(ctx, func(ctx context.Context) error { return s.r.api.ApplyStatus(ctx, to, status) })
		if !errors.Is(err, ErrConflict) || n == attempts {
			return err
		}
	}
}

func withTimeout(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return f(ctx)
}

func request[T any](ctx context.Context, f func(context.Context) (T, error)) (v T, err error) {
	err = withTimeout(ctx, func(ctx context.Context) error {
		v, err = f(ctx)
		return err
	})
	return v, err
}
