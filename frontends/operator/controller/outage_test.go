package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmop/sdk/vmop/reconcile"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// switchable is an API server that can be away, and refuse what it is asked.
type switchable struct {
	mu            sync.Mutex
	away, refuses bool
}

func (s *switchable) set(away bool) { s.mu.Lock(); defer s.mu.Unlock(); s.away = away }

func (s *switchable) refuse(is bool) { s.mu.Lock(); defer s.mu.Unlock(); s.refuses = is }

func (s *switchable) probe(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.away:
		return errors.New("connection refused")
	case s.refuses:
		return fmt.Errorf("403 Forbidden: %w", errRefused)
	}
	return nil
}

func newTestServer(ctx context.Context, log *bytes.Buffer) (*apiServer, *switchable) {
	real := &switchable{}
	s := &apiServer{
		log: logr.FromSlogHandler(slog.NewTextHandler(log, nil)), probe: real.probe, now: time.Now,
		changed: make(chan struct{}), watches: map[*patientWatch]bool{},
	}
	s.start(ctx)
	return s, real
}

// However much fails in it, an outage is a line of the log, and everybody goes on within
// a second of its end.
func TestAnOutageIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		ctx, end := context.WithCancel(t.Context())
		s, real := newTestServer(ctx, &lines)
		s.answered.Store(true)
		log, client := s.quiet(s.log, false), s.quiet(s.log, true)
		real.set(true)
		s.failed(errors.New("connection refused"))
		synctest.Wait()
		for range 100 {
			log.Error(errors.New("connection refused"), "Reconciler error")
			client.Info("a watch ended")
		}
		var backAt time.Time
		go func() { _ = s.reachable(ctx); backAt = time.Now() }()
		time.Sleep(90*time.Second + 300*time.Millisecond)
		real.set(false)
		up := time.Now()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if backAt.IsZero() || backAt.Sub(up) > probePause {
			t.Errorf("went on after %v", backAt.Sub(up))
		}
		text := lines.String()
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, "suppressedLines=200") || !strings.Contains(text, "after=1m31s") || !strings.Contains(text, "connection refused") {
			t.Errorf("the log:\n%s", text)
		}
		client.Info("a watch was very short")
		log.Error(nil, "something else")
		time.Sleep(recovers)
		client.Info("another watch was")
		if text := lines.String(); strings.Contains(text, "very short") || !strings.Contains(text, "something else") || !strings.Contains(text, "another watch") {
			t.Errorf("later:\n%s", text)
		}
		lines.Reset()
		real.set(true)
		s.failed(errors.New("connection refused"))
		synctest.Wait()
		client.Info("a watch ended")
		real.set(false)
		time.Sleep(2 * probePause)
		synctest.Wait()
		if text := lines.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "suppressedLines=1 ") && !strings.HasSuffix(text, "suppressedLines=1\n") {
			t.Errorf("the next outage:\n%s", text)
		}
		end()
		s.wait()
	})
}

// An outage may begin within an answer: whoever reads it complains of that in the log.
func TestAnOutageBeginsWithinAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		ctx, end := context.WithCancel(t.Context())
		s, real := newTestServer(ctx, &lines)
		s.answered.Store(true)
		broken := errors.New("connection reset by peer")
		transport := s.observing(roundTripper(func(*http.Request) (*http.Response, error) {
			body := io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken))
			return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(body)}, nil
		}))
		real.set(true)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, broken) {
			t.Errorf("the answer ends with %v", err)
		}
		s.quiet(s.log, true).Error(broken, "Unexpected error when reading response body")
		synctest.Wait()
		real.set(false)
		time.Sleep(2 * probePause)
		synctest.Wait()
		if text := lines.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "suppressedLines=1") {
			t.Errorf("the log:\n%s", text)
		}
		end()
		s.wait()
	})
}

// One that lasts is told while it does, and one of an API server that has never answered
// at once: that may be a mistake in how it is looked for. Both have a line for their end.
func TestAnOutageThatLastsIsToldMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		answered bool
		told     time.Duration
	}{"lasting": {true, tellAfter}, "never answered": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines bytes.Buffer
				ctx, stop := context.WithCancel(t.Context())
				s, real := newTestServer(ctx, &lines)
				s.answered.Store(test.answered)
				real.set(true)
				s.failed(errors.New("connection refused"))
				told := func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.told }
				if test.told > 0 {
					time.Sleep(test.told - time.Second)
					synctest.Wait()
					if told() {
						t.Error("told too early")
					}
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if !told() {
					t.Error("not told while it lasts")
				}
				time.Sleep(time.Hour)
				real.set(false)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				meanwhile, end, _ := strings.Cut(lines.String(), "\n")
				if !strings.Contains(meanwhile, "cannot be reached") || !strings.Contains(meanwhile, "connection refused") || strings.Count(end, "\n") != 1 || !strings.Contains(end, "again") || !s.answered.Load() {
					t.Errorf("the log:\n%s", &lines)
				}
				stop()
				s.wait()
			})
		})
	}
}

// An operator that ends in an outage says why it did nothing.
func TestAnOutageIsToldAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		ctx, end := context.WithCancel(t.Context())
		s, real := newTestServer(ctx, &lines)
		s.answered.Store(true)
		real.set(true)
		s.failed(errors.New("connection refused"))
		time.Sleep(10 * time.Second)
		end()
		s.wait()
		if text := lines.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "cannot be reached") {
			t.Errorf("the log:\n%s", text)
		}
	})
}

// An API server that has just started refuses everything until it has read who may do
// what: the outage ends when it does not. One that always refuses the question is taken
// for what it is after some seconds, and from then on at once.
func TestAnOutageLastsUntilNothingIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		ctx, end := context.WithCancel(t.Context())
		s, real := newTestServer(ctx, &lines)
		s.answered.Store(true)
		// outage is how long it refuses after it was away; what it returns is when the
		// outage was over, after its first answer.
		outage := func(refusing time.Duration) time.Duration {
			t.Helper()
			real.set(true)
			s.failed(errors.New("connection refused"))
			synctest.Wait()
			time.Sleep(time.Minute)
			real.set(false)
			real.refuse(refusing > 0)
			up := time.Now()
			var over time.Duration
			go func() { _ = s.reachable(ctx); over = time.Since(up) }()
			time.Sleep(refusing)
			real.refuse(false)
			time.Sleep(time.Minute)
			synctest.Wait()
			return over
		}
		for _, test := range []struct{ refusing, from, to time.Duration }{
			{time.Second, time.Second, time.Second + probePause},
			{time.Hour, refusesFirst, refusesFirst + 2*probePause},
			{time.Hour, 0, probePause},
			{0, 0, probePause},
			{time.Second, time.Second, time.Second + probePause},
		} {
			if over := outage(test.refusing); over < test.from || over > test.to {
				t.Errorf("refused for %v, and over after %v; want %v to %v", test.refusing, over, test.from, test.to)
			}
		}
		if n := strings.Count(lines.String(), "\n"); n != 5 {
			t.Errorf("%d lines of five outages:\n%s", n, &lines)
		}
		end()
		s.wait()
	})
}

// A request that fails is no outage where the API server only refuses to say that it is
// ready.
func TestARefusedQuestionIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		s, real := newTestServer(t.Context(), &lines)
		real.refuse(true)
		for _, held := range []time.Duration{refusesFirst + probePause, 0} {
			begin := time.Now()
			s.failed(errors.New("connection reset"))
			if err := s.reachable(t.Context()); err != nil || time.Since(begin) > held {
				t.Errorf("%v; held up for %v", err, time.Since(begin))
			}
		}
		if lines.Len() > 0 {
			t.Errorf("the log: %s", &lines)
		}
	})
}

// One request that fails is not an outage.
func TestAFailureThatPassesIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		s, _ := newTestServer(t.Context(), &lines)
		s.failed(errors.New("connection reset"))
		synctest.Wait()
		if s.isAway() || lines.Len() > 0 {
			t.Errorf("away %v, the log: %s", s.isAway(), &lines)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		request, _ := http.NewRequestWithContext(canceled, http.MethodGet, "http://nowhere.test", nil)
		_, err := s.observing(roundTripper(func(*http.Request) (*http.Response, error) { return nil, context.Canceled })).RoundTrip(request)
		if s.isAway() || err == nil {
			t.Error("what the operator itself has ended is taken for an outage")
		}
	})
}

// countingWatch counts what a reflector asks for.
type countingWatch struct {
	toolscache.ListerWatcher
	asked int
	// busy is how often it says that it is not ready, refuses how often it refuses.
	busy, refuses int
	made          []*watch.FakeWatcher
}

func (c *countingWatch) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	c.asked++
	return nil, errors.New("connection refused")
}

func (c *countingWatch) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	c.asked++
	if c.asked <= c.busy {
		return nil, apierrors.NewTooManyRequests("storage is (re)initializing", 1)
	}
	if c.asked <= c.refuses {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "vms"}, "", errors.New("no role"))
	}
	w := watch.NewFake()
	c.made = append(c.made, w)
	return w, nil
}

// Watches wait while the API server is away, and reconciliations until they are
// there again, but not for ever.
func TestWatchesAndReconciliationsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, real := newTestServer(t.Context(), &bytes.Buffer{})
		of := &countingWatch{}
		w := &patientWatch{of: of, server: s}
		s.watches[w] = false
		first, err := w.WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil || s.steady().IsZero() {
			t.Fatalf("%v; steady since %v", err, s.steady())
		}
		real.set(true)
		s.failed(errors.New("connection refused"))
		first.Stop()
		first.Stop()
		again := make(chan watch.Interface, 1)
		go func() { w, _ := w.WatchWithContext(t.Context(), metav1.ListOptions{}); again <- w }()
		time.Sleep(5 * time.Minute)
		if of.asked != 1 || !s.steady().IsZero() {
			t.Errorf("asked %d times", of.asked)
		}

		leading := newLeading(true, nil)
		g := newGate(leading, s, prometheus.NewCounterVec(prometheus.CounterOpts{}, []string{"controller"}))
		var at time.Time
		go func() { _, _ = g.open(t.Context()); at = time.Now() }()
		real.set(false)
		up := time.Now()
		time.Sleep(time.Second)
		synctest.Wait()
		second := <-again
		if at.IsZero() || at.Sub(up) > probePause {
			t.Errorf("reconciliations go on at %v, %v after the API server", at, at.Sub(up))
		}
		second.Stop() // and does not come back
		at = time.Time{}
		go func() { _, _ = g.open(t.Context()); at = time.Now() }()
		time.Sleep(watchGrace)
		synctest.Wait()
		if at.IsZero() {
			t.Error("one watch holds up everything")
		}
	})
}

// A watch that would go on after an outage is told during it that it cannot, and reads
// everything anew when it ends; after a short one it goes on.
func TestWatchesDoNotGoOnAfterALongOutage(t *testing.T) {
	for name, test := range map[string]struct {
		away    time.Duration
		expired bool
	}{"short": {resumable - time.Second, false}, "long": {time.Minute, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, real := newTestServer(t.Context(), &bytes.Buffer{})
				w, other := &patientWatch{of: &countingWatch{}, server: s}, &patientWatch{of: &countingWatch{}, server: s}
				if _, err := w.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "7"}); err != nil {
					t.Fatal(err)
				}
				real.set(true)
				s.failed(errors.New("connection refused"))
				begin := time.Now()
				var after, anew time.Duration
				var err error
				go func() {
					_, err = w.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
					after = time.Since(begin)
				}()
				go func() {
					initial := true
					_, _ = other.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "7", SendInitialEvents: &initial})
					anew = time.Since(begin)
				}()
				time.Sleep(test.away)
				real.set(false)
				time.Sleep(probePause)
				synctest.Wait()
				if apierrors.IsResourceExpired(err) != test.expired || test.expired && after != resumable || !test.expired && after < test.away {
					t.Errorf("%v after %v", err, after)
				}
				if anew < test.away || anew > test.away+probePause {
					t.Errorf("everything is read anew after %v", anew)
				}
			})
		})
	}
}

// An API server that has just started puts watches off, or refuses them; they are there as
// soon as it does not. What it refuses otherwise is told at once, and at last what it only
// puts off.
func TestWatchesArePutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newTestServer(t.Context(), &bytes.Buffer{})
		begin := time.Now()
		w := &patientWatch{of: &countingWatch{busy: 8}, server: s}
		made, err := w.WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil || time.Since(begin) != 8*watchPause {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		made.Stop()
		begin = time.Now()
		w = &patientWatch{of: &countingWatch{busy: 1000}, server: s}
		if _, err := w.WatchWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsTooManyRequests(err) || time.Since(begin) > watchPatience+watchPause {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		begin = time.Now()
		w = &patientWatch{of: &countingWatch{refuses: 1000}, server: s}
		if _, err := w.WatchWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || time.Since(begin) > 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		s.failed(errors.New("connection reset")) // and is back at once
		synctest.Wait()
		w = &patientWatch{of: &countingWatch{refuses: 4}, server: s}
		if _, err := w.WatchWithContext(t.Context(), metav1.ListOptions{}); err != nil || time.Since(begin) != 4*watchPause {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		w = &patientWatch{of: &countingWatch{refuses: 1000}, server: s}
		if _, err := w.WatchWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || time.Since(begin) > forbidsFirst {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// A term ends by itself when the lease was not renewed, before anybody else may
// take it, whatever the elector is at; and begins again when it is.
func TestTermsEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := 0
		l := newLeading(false, func() { terms++ })
		renew := func() { l.set(func() { l.until = time.Now().Add(10 * time.Second) }) }
		renew()
		if l.is() {
			t.Fatal("leads without being elected")
		}
		l.set(func() { l.elected = true })
		term, _ := l.present()
		if term == nil || terms != 1 {
			t.Fatal("does not lead")
		}
		for range 5 {
			time.Sleep(9 * time.Second)
			renew()
		}
		if term.Err() != nil {
			t.Fatal("a term that is renewed ends")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if l.is() || !errors.Is(context.Cause(term), errNotLeading) {
			t.Fatal("a term that is not renewed goes on")
		}
		_, begins := l.present()
		renew()
		if <-begins; !l.is() || terms != 2 {
			t.Error("it does not lead again")
		}
		l.set(func() { l.elected = false })
		if l.is() {
			t.Error("leads though somebody else was elected")
		}
	})
}

// A process that was frozen finds out before it writes, not when a timer comes.
func TestATermIsOverByTheClock(t *testing.T) {
	l := newLeading(false, nil)
	now := time.Now()
	l.now = func() time.Time { return now }
	l.set(func() { l.elected, l.until = true, now.Add(time.Hour) })
	if !l.is() {
		t.Fatal("does not lead")
	}
	now = now.Add(time.Hour)
	e := &executor{leads: l.is}
	if _, err := e.attempt(t.Context(), "", reconcile.DeletePod{Name: "a"}); !errors.Is(err, errNotLeading) {
		t.Errorf("got %v", err)
	}
}

// A reconciliation that hangs is a failed health check, and one that lasts is
// counted; one that only waits for its turn is neither.
func TestHangingReconciliations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newTestServer(t.Context(), &bytes.Buffer{})
		l := newLeading(false, nil)
		registry := prometheus.NewRegistry()
		slow, err := newSlowCounter(registry)
		if err != nil {
			t.Fatal(err)
		}
		g := newGate(l, s, slow)
		hangs := make(chan struct{})
		r := g.before("machines", reconcileFunc(func(ctx context.Context) (ctrl.Result, error) {
			<-ctx.Done() // what follows the context ends in time
			<-hangs
			return ctrl.Result{}, ctx.Err()
		}))
		counts := func(when string, want float64) {
			t.Helper()
			families, err := registry.Gather()
			if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 {
				t.Fatalf("%s: %v, %v", when, families, err)
			}
			if got := families[0].GetMetric()[0].GetCounter().GetValue(); got != want {
				t.Errorf("%s: %v are counted, want %v", when, got, want)
			}
		}
		counts("at the beginning", 0)
		done := make(chan error)
		go func() { _, err := r.Reconcile(t.Context(), request("apps", 1)); done <- err }()
		time.Sleep(time.Hour)
		if err := g.healthy(nil); err != nil {
			t.Errorf("one that waits to lead: %v", err)
		}
		counts("one that waits to lead", 0)
		l.set(func() { l.elected, l.until = true, time.Now().Add(24*time.Hour) })
		time.Sleep(reconcileTimeout + time.Second)
		if err := g.healthy(nil); err != nil {
			t.Errorf("too early: %v", err)
		}
		time.Sleep(time.Minute)
		if err := g.healthy(nil); err == nil || !strings.Contains(err.Error(), "machines apps/1 hangs since 3m1s") {
			t.Errorf("got %v", err)
		}
		close(hangs)
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an error that leads to another try is wanted, got %v", err)
		}
		counts("one that lasted", 1)
		for _, passes := range []struct {
			takes time.Duration
			count float64
		}{{time.Second, 1}, {time.Second + time.Millisecond, 2}} {
			r := g.before("machines", reconcileFunc(func(context.Context) (ctrl.Result, error) {
				time.Sleep(passes.takes)
				return ctrl.Result{}, nil
			}))
			if _, err := r.Reconcile(t.Context(), request("apps", 2)); err != nil {
				t.Error(err)
			}
			counts(passes.takes.String(), passes.count)
		}
		if err := g.healthy(nil); err != nil {
			t.Error(err)
		}
		l.set(func() { l.elected = false })
	})
}

// When nothing is left to do of much, that is told once; a little work is not worth it.
func TestQuietAfterMuchWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newTestServer(t.Context(), &bytes.Buffer{})
		g := newGate(newLeading(true, nil), s, prometheus.NewCounterVec(prometheus.CounterOpts{}, []string{"controller"}))
		var told atomic.Int64
		long := time.Duration(0)
		g.quiet = func() { told.Add(1) }
		r := g.before("machines", reconcileFunc(func(context.Context) (ctrl.Result, error) {
			time.Sleep(long)
			return ctrl.Result{}, nil
		}))
		work := func(n int) {
			for range n {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
					t.Error(err)
				}
			}
		}
		after := func(d time.Duration, want int64, when string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if told.Load() != want {
				t.Errorf("%s: told %d times, want %d", when, told.Load(), want)
			}
		}
		work(muchWork - 1)
		after(time.Hour, 0, "after a little work")
		work(1)
		after(quietAfter-time.Second, 0, "just after it")
		long = 2 * quietAfter
		go work(1)
		after(quietAfter+time.Second, 0, "while there is more")
		after(3*quietAfter, 1, "at the end")
		long = 0
		work(10)
		after(time.Hour, 1, "after a little more")
		work(muchWork)
		after(time.Hour, 2, "after much more")
		// There is always somebody about whom something is to be done.
		work(muchWork)
		for range 3 * quietAfter / time.Second {
			work(littleWork / int(quietAfter/time.Second))
			time.Sleep(time.Second)
		}
		after(0, 3, "while a little goes on")
		work(muchWork)
		for range 3 * quietAfter / time.Second {
			work(littleWork)
			time.Sleep(time.Second)
		}
		after(0, 3, "while much goes on")
	})
}

// What a lost lease interrupts is tried again, and is no error.
func TestInterruptedReconciliations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newTestServer(t.Context(), &bytes.Buffer{})
		l := newLeading(false, nil)
		l.set(func() { l.elected, l.until = true, time.Now().Add(time.Minute) })
		g := newGate(l, s, prometheus.NewCounterVec(prometheus.CounterOpts{}, []string{"controller"}))
		r := g.before("machines", reconcileFunc(func(ctx context.Context) (ctrl.Result, error) {
			<-ctx.Done()
			return ctrl.Result{}, ctx.Err()
		}))
		go func() { time.Sleep(time.Second); l.set(func() { l.elected = false }) }()
		result, err := r.Reconcile(t.Context(), request("apps", 1))
		if err != nil || result.RequeueAfter == 0 {
			t.Errorf("got %+v, %v", result, err)
		}
		process, end := context.WithCancel(t.Context())
		go func() { time.Sleep(time.Hour); end() }()
		if result, err := r.Reconcile(process, request("apps", 1)); err != nil || result.RequeueAfter != 0 {
			t.Errorf("when the process ends: got %+v, %v", result, err)
		}
	})
}

type reconcileFunc func(context.Context) (ctrl.Result, error)

func (f reconcileFunc) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	return f(ctx)
}
