package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// leading is whether this operator may act. Losing the lease does not end the
// process: caches and queues stay as they are, everything that is under way is
// ended, and the operator runs for the lease again.
//
// That two never act at a time follows from the times: a term ends by a clock of
// its own when the last renewal is as old as the renew deadline, counted from
// before its request was sent; and nobody else takes the lease before it has seen
// no renewal for the lease duration, which is longer. A term's context ends its
// requests, and no request begins after its end. (client-go's own callback comes
// late: the elector first tries to give the lease back.)
type leading struct {
	now   func() time.Time
	begin func() // before each term

	mu sync.Mutex
	// alone: there is no lease.
	alone bool
	// elected: the elector says so.
	elected bool
	// until is when the term ends unless the lease is renewed.
	until time.Time
	timer *time.Timer
	// term is the present one, nil if there is none.
	term context.Context
	end  context.CancelCauseFunc
	// changed is closed and made anew when a term begins.
	changed chan struct{}
}

func newLeading(alone bool, begin func()) *leading {
	l := &leading{now: time.Now, begin: begin, alone: alone, changed: make(chan struct{})}
	l.update()
	return l
}

// set changes what is known of the lease.
func (l *leading) set(change func()) {
	l.mu.Lock()
	change()
	l.mu.Unlock()
	l.update()
}

// update begins or ends a term.
func (l *leading) update() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	may := l.alone || l.elected && now.Before(l.until)
	switch {
	case may && l.term == nil:
		if l.begin != nil {
			l.begin()
		}
		l.term, l.end = context.WithCancelCause(context.Background())
		close(l.changed)
		l.changed = make(chan struct{})
	case !may && l.term != nil:
		l.end(errNotLeading)
		l.term = nil
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if l.term != nil && !l.alone {
		l.timer = time.AfterFunc(l.until.Sub(now), l.update)
	}
}

// present returns the context of the present term, or what to wait for.
func (l *leading) present() (context.Context, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil || !l.alone && !l.now().Before(l.until) {
		return nil, l.changed
	}
	return l.term, nil
}

// is reports whether this operator leads.
func (l *leading) is() bool {
	term, _ := l.present()
	return term != nil
}

// renewed is a lock that notes when it was written for this operator.
type renewed struct {
	resourcelock.Interface
	note func(sent time.Time)
}

// Create implements [resourcelock.Interface].
func (r *renewed) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	err := r.Interface.Create(ctx, record)
	if err == nil && record.HolderIdentity == r.Identity() {
		r.note(sent)
	}
	return err
}

// Update implements [resourcelock.Interface].
func (r *renewed) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	err := r.Interface.Update(ctx, record)
	if err == nil && record.HolderIdentity == r.Identity() {
		r.note(sent)
	}
	return err
}

// election runs for the lease, again and again.
type election struct {
	options LeaderElection
	lock    *renewed
	leading *leading
	server  *apiServer
	log     logr.Logger
}

func newElection(config *rest.Config, o LeaderElection, l *leading, s *apiServer, log logr.Logger) (*election, error) {
	for _, d := range []struct {
		of    *time.Duration
		usual time.Duration
	}{{&o.LeaseDuration, 15 * time.Second}, {&o.RenewDeadline, 10 * time.Second}, {&o.RetryPeriod, 2 * time.Second}} {
		if *d.of <= 0 {
			*d.of = d.usual
		}
	}
	config = rest.CopyConfig(config)
	config.Timeout = o.RenewDeadline / 2
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}
	e := &election{options: o, leading: l, server: s, log: log}
	e.lock = &renewed{lock, func(sent time.Time) {
		l.set(func() { l.until = sent.Add(o.RenewDeadline) })
	}}
	return e, nil
}

// run runs for the lease until the context ends. Then it gives it back, so that the
// next operator need not wait; nothing may be under way by then.
//
// client-go tells of each candidacy and each election. Of those after the first one
// nothing is told but what an outage of the API server, which the log has, does not
// explain.
func (e *election) run(ctx context.Context) error {
	var told atomic.Bool // that the lease was lost
	candidacy := ctx
	for e.server.reachable(ctx) == nil {
		again := candidacy != ctx
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: e.lock, Name: e.options.Name,
			LeaseDuration: e.options.LeaseDuration, RenewDeadline: e.options.RenewDeadline, RetryPeriod: e.options.RetryPeriod,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					e.leading.set(func() { e.leading.elected = true })
					if told.Swap(false) {
						e.log.Info("this operator leads again", "lease", e.lock.Describe())
					}
				},
				OnStoppedLeading: func() {},
				OnNewLeader: func(identity string) {
					if again && identity != e.lock.Identity() {
						told.Store(true)
						e.log.Info("another operator leads", "lease", e.lock.Describe(), "holder", identity)
					}
				},
			},
		})
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		elector.Run(candidacy)
		candidacy = klog.NewContext(ctx, errorsOnly(klog.FromContext(ctx)))
		e.leading.set(func() { e.leading.elected = false })
		if ctx.Err() == nil && !e.server.isAway() {
			told.Store(true)
			e.log.Info("this operator does not lead any more, and runs for the lease again", "lease", e.lock.Describe())
		}
	}
	e.release()
	return nil
}

// release gives the lease back if it is held.
func (e *election) release() {
	ctx, cancel := context.WithTimeout(context.Background(), e.options.RenewDeadline/2)
	defer cancel()
	old, _, err := e.lock.Get(ctx)
	if err != nil || old.HolderIdentity != e.lock.Identity() {
		return
	}
	now := metav1.Now()
	record := resourcelock.LeaderElectionRecord{LeaderTransitions: old.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now}
	if err := e.lock.Update(ctx, record); err != nil {
		e.log.Info("the lease could not be given back; the next operator waits until it has expired", "reason", err.Error())
	}
}

// errNotLeading ends a reconciliation whose operator does not lead any more.
var errNotLeading = errors.New("this operator does not lead any more")
