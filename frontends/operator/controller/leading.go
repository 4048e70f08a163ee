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

// leading tracks whether this operator may act. Losing the lease does not end the process: caches
// and queues stay, everything in progress is ended, and the operator runs for the lease again.
//
// Two operators never act at the same time: a term ends by its own clock when the last renewal is
// as old as the renew deadline, counted from before its request was sent; and another operator
// takes the lease only after it has seen no renewal for the lease duration, which is longer. The
// context of a term ends its requests, and no request begins after it. client-go's own callback
// comes too late: the elector first tries to release the lease.
type leading struct {
	now   func() time.Time
	begin func() // before each term

	mu sync.Mutex
	// alone: there is no lease.
	alone   bool
	elected bool
	// until is when the term ends unless the lease is renewed.
	until time.Time
	timer *time.Timer
	term  context.Context
	end   context.CancelCauseFunc
	// changed is closed and replaced when a term begins.
	changed chan struct{}
}

func newLeading(alone bool, begin func()) *leading {
	l := &leading{now: time.Now, begin: begin, alone: alone, changed: make(chan struct{})}
	l.update()
	return l
}

func (l *leading) set(change func()) {
	l.mu.Lock()
	change()
	l.mu.Unlock()
	l.update()
}

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

// present returns the context of the present term, or the channel to wait on.
func (l *leading) present() (context.Context, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil || !l.alone && !l.now().Before(l.until) {
		return nil, l.changed
	}
	return l.term, nil
}

func (l *leading) is() bool {
	term, _ := l.present()
	return term != nil
}

// renewed is a lock that records when it was written for this operator.
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

// run runs for the lease until the context ends, and then releases it, so that the next operator
// need not wait; nothing may be in progress by then.
//
// client-go logs each candidacy and each election. After the first, only those are logged that an
// outage of the API server, which is logged itself, does not explain.
func (e *election) run(ctx context.Context) error {
	var told atomic.Bool // whether the loss of the lease was logged
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

var errNotLeading = errors.New("this operator does not lead any more")
