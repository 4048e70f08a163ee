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
	// probePause is the time between two attempts to reach an API server that is
	// away, and probeTimeout how long each may take.
	probePause   = 250 * time.Millisecond
	probeTimeout = 5 * time.Second
	// refusesFirst is how long an API server that refuses to say whether it is ready is
	// taken for one that has just started, and refuses everything until it has read who
	// may do what. One that still refuses then says that it may not be asked.
	refusesFirst = 3 * time.Second
	// watchGrace is how long reconciliations wait for the watches to be there again
	// after an outage.
	watchGrace = 10 * time.Second
	// watchPause is the time between two attempts at a watch that an API server puts
	// off, and watchPatience when the reflector is told of it, and backs off.
	watchPause    = 500 * time.Millisecond
	watchPatience = time.Minute
	// resumable is how long the API server may be away before a watch does not go on from
	// where it was. One that has started anew does not know that any more.
	resumable = 10 * time.Second
	// tellAfter is how long an outage lasts before it is told; a shorter one is told at
	// its end, in one line. Who reads the log by kubectl needs the API server, too.
	tellAfter = 2 * time.Minute
)

// apiServer knows whether the API server can be reached: every request tells, and
// while none gets an answer one probe looks for all of them. Nobody else need try
// then: watches and reconciliations wait, which is why they go on at once when it
// is back, rather than after back-offs of their own, and why an outage is one line
// of the log.
type apiServer struct {
	log   logr.Logger
	probe func(context.Context) error
	now   func() time.Time

	mu sync.Mutex
	// changed is closed and made anew whenever something here changes.
	changed chan struct{}
	// away is since when it cannot be reached, zero if it can; back is when it was
	// again. told: the log has it.
	away, back time.Time
	told       bool
	// mayNotAsk: the API server never says whether it is ready.
	mayNotAsk bool
	// watches has whether each of the watches is there; fed is since when all are.
	watches map[*patientWatch]bool
	fed     time.Time
	// ctx ends the probes, of which there is one at a time.
	ctx    context.Context
	probes sync.WaitGroup

	// answered: the API server has been reached before.
	answered atomic.Bool
	// suppressed counts the lines that were kept from the log.
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

// errRefused is the answer of an API server that can be reached and refuses the question.
var errRefused = errors.New("refused")

// start lets probes run until the context ends; wait waits for the last of them.
func (s *apiServer) start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
}

func (s *apiServer) wait() { s.probes.Wait() }

// notify tells those who wait. The lock is held.
func (s *apiServer) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// observing notes whether requests are answered, to the end of the answers.
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

// observedBody is an answer whose end is noted if it comes too early.
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

// Close implements [io.Closer]. Whoever reads a watch meanwhile gets an error then.
func (b *observedBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// failed says that a request was not answered, and has it looked into.
func (s *apiServer) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.away.IsZero() || s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	s.away = s.now()
	s.notify()
	s.probes.Go(func() { s.look(s.ctx, err) })
}

// look probes until there is an answer.
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

// refusesForGood reports whether an API server that has refused the question since some
// time is ready for others.
func (s *apiServer) refusesForGood(since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mayNotAsk || s.now().Sub(since) >= refusesFirst
}

// isAway reports whether the API server cannot be reached.
func (s *apiServer) isAway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.away.IsZero()
}

// reachable waits until the API server can be reached.
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

// lasts waits until the API server can be reached, and reports whether it was away for
// some time before that.
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

// settled reports whether what the caches show follows what happens: after an
// outage that is not so before the watches are there again. One that does not come
// back holds up nobody for ever. Otherwise it returns what to wait for.
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

// patientWatch lists and watches for a cache, but waits while the API server is
// away: a reflector that fails pauses for up to a minute, one that waits does not.
type patientWatch struct {
	of     toolscache.ListerWatcherWithContext
	server *apiServer
	// beside: nobody waits for it to be there.
	beside bool
}

// newInformer makes an informer of a cache.
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
	return list, err
}

// WatchWithContext implements [toolscache.WatcherWithContext]. After a long outage a watch
// that goes on would be refused because what it asks for is too old, and the reflector
// would pause before it reads everything anew. It is told so during the outage, and its
// pause is over when that ends.
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
	w.there(true)
	return &stoppedWatch{Interface: made, stopped: func() { w.there(false) }}, nil
}

// patiently does something as soon as the API server is there and ready for it. One
// that has just started puts watches off for some seconds while it fills its own
// caches, and may refuse them until it has read who may do what.
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

// temporary reports whether an API server is likely to give another answer soon.
func temporary(err error) bool {
	return observation.Unreachable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

func (w *patientWatch) there(is bool) {
	if w.beside {
		return
	}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.server.watches[w] = is
	w.server.fed = w.server.now()
	for _, there := range w.server.watches {
		if !there {
			w.server.fed = time.Time{}
		}
	}
	w.server.notify()
}

// justBack reports whether an outage has ended a short while ago.
func (s *apiServer) justBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.back.IsZero() && s.now().Sub(s.back) < watchGrace
}

// steady is since when all watches are there, zero if one is not.
func (s *apiServer) steady() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fed
}

// stoppedWatch tells when it is stopped, which whoever reads it does in any case.
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

// quiet is a logger that keeps silent about what fails because the API server is
// away; of a client everything is kept back then.
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

// Init implements [logr.LogSink]: the sink beneath was made ready before.
func (q *quietSink) Init(logr.RuntimeInfo) {}

// Info implements [logr.LogSink].
func (q *quietSink) Info(level int, msg string, kv ...any) {
	if q.client && q.server.isAway() {
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

// errorsOnly is a logger that tells of nothing but errors.
func errorsOnly(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(&errorSink{log.GetSink()})
}

type errorSink struct{ logr.LogSink }

// Init implements [logr.LogSink]: the sink beneath was made ready before.
func (*errorSink) Init(logr.RuntimeInfo) {}

// Info implements [logr.LogSink].
func (*errorSink) Info(int, string, ...any) {}

// WithValues implements [logr.LogSink].
func (e *errorSink) WithValues(kv ...any) logr.LogSink {
	return &errorSink{e.LogSink.WithValues(kv...)}
}

// WithName implements [logr.LogSink].
func (e *errorSink) WithName(name string) logr.LogSink { return &errorSink{e.LogSink.WithName(name)} }
