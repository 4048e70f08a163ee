package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmop/sdk/vmop/reconcile/observation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

const (
	// probePause is the time between two attempts to reach an API server that is away, probeTimeout
	// the timeout of each.
	probePause   = 250 * time.Millisecond
	probeTimeout = 5 * time.Second
	// refusesFirst is how long an API server that forbids its readiness endpoint is taken for one
	// that has just started, and forbids everything until it has read the roles. After that, the
	// operator has no access to the endpoint.
	refusesFirst = 3 * time.Second
	// watchGrace is how long reconciliations wait after an outage for the watches to be
	// established. To read thousands of machines anew takes longer, and what is seen of the others
	// meanwhile is as old as the outage.
	watchGrace = 4 * time.Second
	// forbidsFirst is how long after an outage a watch that is forbidden is tried again, see
	// refusesFirst.
	forbidsFirst = 10 * time.Second
	// watchPause is the time between two attempts at a watch that an API server puts off, and
	// watchPatience when the error is passed to the reflector, which backs off.
	watchPause    = 500 * time.Millisecond
	watchPatience = time.Minute
	// resumable is how long the API server may be away before a watch is not resumed from where it
	// was. A restarted API server cannot resume.
	resumable = 10 * time.Second
	// tellAfter is how long an outage lasts before it is logged; a shorter one is logged at its
	// end, in one line. Reading the log by kubectl needs the API server, too.
	tellAfter = 2 * time.Minute
	// recovers is how long after an outage remarks of clients are suppressed: that a watch had
	// ended within a second was seen after ten.
	recovers = 30 * time.Second
)

// apiServer tracks whether the API server can be reached: every request shows it, and while none is
// answered, one probe checks for all. Watches and reconciliations wait meanwhile, so that they
// continue at once when it is back, without back-offs of their own, and an outage is one line of
// the log.
type apiServer struct {
	log   logr.Logger
	probe func(context.Context) error
	now   func() time.Time

	mu sync.Mutex
	// changed is closed and replaced whenever the state changes.
	changed chan struct{}
	// away is since when it cannot be reached, zero if it can; back is when it was reached again.
	// told: the outage was logged.
	away, back time.Time
	told       bool
	// mayNotAsk: the operator has no access to the readiness endpoint.
	mayNotAsk bool
	// watches records whether each watch is established; fed is since when all are.
	watches map[*patientWatch]bool
	fed     time.Time
	// ctx ends the probes, of which one runs at a time.
	ctx    context.Context
	probes sync.WaitGroup

	// answered: the API server has been reached before.
	answered atomic.Bool
	// suppressed counts the suppressed log lines.
	suppressed atomic.Int64
}

func newAPIServer(config *rest.Config, log logr.Logger) (*apiServer, error) {
	s := &apiServer{log: log, now: time.Now, changed: make(chan struct{}), watches: map[*patientWatch]bool{}}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	s.probe = func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("readyz").String(), nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		switch {
		case resp.StatusCode >= http.StatusInternalServerError:
			return fmt.Errorf("%s: %s", req.URL, resp.Status)
		case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
			return fmt.Errorf("%s: %s: %w", req.URL, resp.Status, errRefused)
		}
		return nil
	}
	return s, nil
}

// errRefused is the answer of an API server that can be reached and forbids the request.
var errRefused = errors.New("refused")

// start lets probes run until the context ends; wait waits for the last of them.
func (s *apiServer) start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
}

func (s *apiServer) wait() { s.probes.Wait() }

// notify wakes the waiters. The lock must be held.
func (s *apiServer) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// observing records whether requests are answered, until the end of the answers' bodies.
func (s *apiServer) observing(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		switch {
		case err == nil:
			s.answered.Store(true)
			if resp.StatusCode != http.StatusSwitchingProtocols { // that body is written to, too
				resp.Body = &observedBody{ReadCloser: resp.Body, server: s, request: r.Context()}
			}
		case !errors.Is(r.Context().Err(), context.Canceled):
			s.failed(err)
		}
		return resp, err
	})
}

// observedBody is a response body whose premature end is recorded.
type observedBody struct {
	io.ReadCloser
	server  *apiServer
	request context.Context
	closed  atomic.Bool
}

// Read implements [io.Reader].
func (b *observedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !b.closed.Load() && b.request.Err() == nil {
		b.server.failed(err)
	}
	return n, err
}

// Close implements [io.Closer]. A concurrent reader of a watch gets an error then.
func (b *observedBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// failed records that a request was not answered, and starts a probe.
func (s *apiServer) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.away.IsZero() || s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	s.away = s.now()
	s.suppressed.Store(0) // remarks since the last outage are none of this one
	s.notify()
	s.probes.Go(func() { s.look(s.ctx, err) })
}

func (s *apiServer) look(ctx context.Context, cause error) {
	outage := false
	for refuses := (time.Time{}); ; {
		try, cancel := context.WithTimeout(ctx, probeTimeout)
		err := s.probe(try)
		cancel()
		refused := errors.Is(err, errRefused)
		switch {
		case !refused:
			refuses = time.Time{}
		case refuses.IsZero():
			refuses = s.now()
		}
		if err == nil || refused && s.refusesForGood(refuses) {
			s.mu.Lock()
			s.mayNotAsk = refused
			s.mu.Unlock()
			break
		}
		outage = outage || !refused && ctx.Err() == nil
		s.mu.Lock()
		if tell := outage && !s.told && (ctx.Err() != nil || !s.answered.Load() || s.now().Sub(s.away) >= tellAfter); tell {
			s.told = true
			s.log.Info("the API server cannot be reached; everything waits until it answers", "reason", cause.Error(), "since", s.away.UTC().Format(time.RFC3339))
		}
		s.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(probePause):
		}
	}
	s.answered.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if outage {
		message, values := "the API server can be reached again", []any{"after", s.now().Sub(s.away).Round(time.Second).String(), "suppressedLines", s.suppressed.Swap(0)}
		if !s.told {
			message, values = "the API server could not be reached; everything waited until it answered", append(values, "reason", cause.Error())
		}
		s.log.Info(message, values...)
	}
	s.away, s.back, s.told = time.Time{}, s.now(), false
	s.notify()
}

// refusesForGood reports whether an API server that has forbidden the endpoint for some time is
// ready for other requests.
func (s *apiServer) refusesForGood(since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mayNotAsk || s.now().Sub(since) >= refusesFirst
}

func (s *apiServer) isAway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.away.IsZero()
}

func (s *apiServer) reachable(ctx context.Context) error {
	for {
		s.mu.Lock()
		away, changed := !s.away.IsZero(), s.changed
		s.mu.Unlock()
		if !away {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// lasts waits until the API server can be reached, and reports whether it was away for some time
// before that.
func (s *apiServer) lasts(ctx context.Context, some time.Duration) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		away, changed, left := !s.away.IsZero(), s.changed, s.away.Add(some).Sub(s.now())
		s.mu.Unlock()
		if !away || left <= 0 {
			return away
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(left):
		}
	}
	return false
}

// settled reports whether the caches follow the cluster: after an outage they do not before the
// watches are established, for which it waits for a limited time. Otherwise it returns what to wait
// for.
func (s *apiServer) settled() (bool, <-chan struct{}, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.away.IsZero() {
		return false, s.changed, time.Hour
	}
	left := s.back.Add(watchGrace).Sub(s.now())
	if s.back.IsZero() || left <= 0 {
		return true, nil, 0
	}
	for _, there := range s.watches {
		if !there {
			return false, s.changed, left
		}
	}
	return true, nil, 0
}

// patientWatch lists and watches for a cache, but waits while the API server is away: a reflector
// that fails pauses for up to a minute, one that waits does not.
type patientWatch struct {
	of     toolscache.ListerWatcherWithContext
	server *apiServer
	// beside: this watch is not waited for.
	beside bool
	// connected, and read, when everything was last read anew, have the server's lock.
	connected bool
	read      time.Time
}

func (s *apiServer) newInformer(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	w := &patientWatch{of: toolscache.ToListerWatcherWithContext(lw), server: s}
	s.mu.Lock()
	s.watches[w] = false
	s.mu.Unlock()
	return toolscache.NewSharedIndexInformer(w, o, resync, indexers)
}

// List implements [toolscache.Lister].
func (w *patientWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return w.ListWithContext(context.Background(), o)
}

// Watch implements [toolscache.Watcher].
func (w *patientWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

// ListWithContext implements [toolscache.ListerWithContext].
func (w *patientWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (list runtime.Object, err error) {
	err = w.patiently(ctx, func() error {
		list, err = w.of.ListWithContext(ctx, o)
		return err
	})
	if err == nil {
		w.readAnew()
	}
	return list, err
}

// WatchWithContext implements [toolscache.WatcherWithContext]. After a long outage, a resumed watch
// would be refused because its resource version is too old, and the reflector would pause before it
// lists again. It gets that error during the outage instead, so that its pause is over when the
// outage ends.
func (w *patientWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.ResourceVersion != "" && o.SendInitialEvents == nil && w.server.lasts(ctx, resumable) {
		return nil, apierrors.NewResourceExpired("the API server was away, and may have started anew")
	}
	var made watch.Interface
	err := w.patiently(ctx, func() (err error) {
		made, err = w.of.WatchWithContext(ctx, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		w.readAnew()
	}
	w.there(true)
	return &stoppedWatch{Interface: made, stopped: func() { w.there(false) }}, nil
}

// patiently calls do as soon as the API server can be reached and is ready. One that has just
// started puts watches off for some seconds while it fills its own caches, and may forbid them
// until it has read the roles.
func (w *patientWatch) patiently(ctx context.Context, do func() error) error {
	for end := w.server.now().Add(watchPatience); ; {
		if err := w.server.reachable(ctx); err != nil {
			return err
		}
		err := do()
		if err == nil || ctx.Err() != nil || w.server.now().After(end) || !temporary(err) && !(apierrors.IsForbidden(err) && w.server.justBack()) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchPause):
		}
	}
}

func temporary(err error) bool {
	return observation.Unreachable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

func (w *patientWatch) readAnew() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.read = w.server.now()
}

// unbroken is since when the watch has missed nothing, zero if it is not established. It is resumed
// from where it was unless everything is read anew, which takes a moment.
func (w *patientWatch) unbroken() time.Time {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if !w.connected || w.read.IsZero() {
		return time.Time{}
	}
	return w.read.Add(cacheLag)
}

func (w *patientWatch) there(is bool) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.connected = is
	if w.beside {
		return
	}
	w.server.watches[w] = is
	w.server.fed = w.server.now()
	for _, there := range w.server.watches {
		if !there {
			w.server.fed = time.Time{}
		}
	}
	w.server.notify()
}

func (s *apiServer) justBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.back.IsZero() && s.now().Sub(s.back) < forbidsFirst
}

// steady is since when all watches are established, zero if one is not.
func (s *apiServer) steady() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fed
}

// stoppedWatch notices when it is stopped, which its reader always does.
type stoppedWatch struct {
	watch.Interface
	once    sync.Once
	stopped func()
}

// Stop implements [watch.Interface].
func (w *stoppedWatch) Stop() {
	w.once.Do(w.stopped)
	w.Interface.Stop()
}

// isRecovering reports whether the API server is away, or is back for so short a time that watches
// may end at once: it serves them before it has all that they need.
func (s *apiServer) isRecovering() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.away.IsZero() || !s.back.IsZero() && s.now().Sub(s.back) < recovers
}

// quiet wraps a logger to suppress what fails because the API server is away; of a client,
// everything is suppressed then, and remarks until the API server has recovered.
func (s *apiServer) quiet(log logr.Logger, client bool) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(&quietSink{log.GetSink(), s, client})
}

type quietSink struct {
	logr.LogSink
	server *apiServer
	client bool
}

// Init implements [logr.LogSink]: the sink beneath is already initialized.
func (q *quietSink) Init(logr.RuntimeInfo) {}

// Info implements [logr.LogSink].
func (q *quietSink) Info(level int, msg string, kv ...any) {
	if q.client && q.server.isRecovering() {
		q.server.suppressed.Add(1)
		return
	}
	q.LogSink.Info(level, msg, kv...)
}

// Error implements [logr.LogSink].
func (q *quietSink) Error(err error, msg string, kv ...any) {
	if q.server.isAway() {
		q.server.suppressed.Add(1)
		return
	}
	q.LogSink.Error(err, msg, kv...)
}

// WithValues implements [logr.LogSink].
func (q *quietSink) WithValues(kv ...any) logr.LogSink {
	return &quietSink{q.LogSink.WithValues(kv...), q.server, q.client}
}

// WithName implements [logr.LogSink].
func (q *quietSink) WithName(name string) logr.LogSink {
	return &quietSink{q.LogSink.WithName(name), q.server, q.client}
}

func errorsOnly(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(&errorSink{log.GetSink()})
}

type errorSink struct{ logr.LogSink }

// Init implements [logr.LogSink]: the sink beneath is already initialized.
func (*errorSink) Init(logr.RuntimeInfo) {}

// Info implements [logr.LogSink].
func (*errorSink) Info(int, string, ...any) {}

// WithValues implements [logr.LogSink].
func (e *errorSink) WithValues(kv ...any) logr.LogSink {
	return &errorSink{e.LogSink.WithValues(kv...)}
}

// WithName implements [logr.LogSink].
func (e *errorSink) WithName(name string) logr.LogSink { return &errorSink{e.LogSink.WithName(name)} }
