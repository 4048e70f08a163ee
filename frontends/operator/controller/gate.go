package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// reconcileTimeout limits all requests of one reconciliation, requestTimeout each of its
	// writes.
	reconcileTimeout = 2 * time.Minute
	requestTimeout   = 30 * time.Second
	// hanging is when a reconciliation is considered to hang: it ignored its timeout.
	hanging = reconcileTimeout + time.Minute
	slow    = time.Second
	// After muchWork reconciliations, the operator counts as quiet once there were no more than
	// littleWork within quietAfter: with many machines, there is always one to reconcile.
	muchWork   = 1000
	littleWork = 50
	quietAfter = 10 * time.Second
)

// gate precedes every reconciliation: it waits until the operator leads and the caches follow the
// API server, and limits the time. Workers that wait here delay no one: nothing may be done anyway.
type gate struct {
	leading *leading
	server  *apiServer
	now     func() time.Time
	slow    *prometheus.CounterVec

	mu      sync.Mutex
	running map[*passing]bool
	// quiet, if not nil, is called when little is left to do after much. done counts the
	// reconciliations since then, counted is their number when the timer rest was set; rest is nil
	// if nothing is waited for.
	quiet         func()
	done, counted int
	rest          *time.Timer
}

type passing struct {
	what  string
	since time.Time
}

func newGate(l *leading, s *apiServer, slow *prometheus.CounterVec) *gate {
	return &gate{leading: l, server: s, now: time.Now, slow: slow, running: map[*passing]bool{}}
}

func (g *gate) before(controller string, r reconcile.Reconciler) reconcile.Reconciler {
	counted := g.slow.WithLabelValues(controller) // creates the series, at 0
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		term, err := g.open(ctx)
		if err != nil {
			return ctrl.Result{}, nil // the process ends
		}
		limited, cancel := context.WithTimeout(ctx, reconcileTimeout)
		defer cancel()
		defer context.AfterFunc(term, cancel)()
		p := &passing{what: controller + " " + req.String(), since: g.now()}
		g.mu.Lock()
		g.running[p] = true
		g.mu.Unlock()
		defer func() {
			g.ended(p)
			if g.now().Sub(p.since) > slow {
				counted.Inc()
			}
		}()
		result, err := r.Reconcile(limited, req)
		switch {
		case ctx.Err() != nil:
			return ctrl.Result{}, nil
		case term.Err() != nil:
			// An interrupted subject is reconciled again when this operator leads again.
			return ctrl.Result{RequeueAfter: time.Millisecond}, nil
		}
		return result, err
	})
}

func (g *gate) ended(p *passing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, p)
	if g.done++; g.quiet != nil && g.done >= muchWork && g.rest == nil {
		g.counted, g.rest = g.done, time.AfterFunc(quietAfter, g.rests)
	}
}

func (g *gate) rests() {
	g.mu.Lock()
	quiet := g.done-g.counted <= littleWork && len(g.running) == 0
	if quiet {
		g.done, g.rest = 0, nil
	} else {
		g.counted, g.rest = g.done, time.AfterFunc(quietAfter, g.rests)
	}
	g.mu.Unlock()
	if quiet {
		g.quiet()
	}
}

func (g *gate) open(ctx context.Context) (context.Context, error) {
	for {
		term, changed := g.leading.present()
		wait := time.Hour
		if term != nil {
			var settled bool
			if settled, changed, wait = g.server.settled(); settled {
				return term, ctx.Err()
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (g *gate) healthy(*http.Request) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for p := range g.running {
		if d := g.now().Sub(p.since); d > hanging {
			return fmt.Errorf("the reconciliation of %s hangs since %v", p.what, d.Round(time.Second))
		}
	}
	return nil
}
