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
	// reconcileTimeout is how long all requests of one reconciliation may take, and
	// requestTimeout how long each of its writes.
	reconcileTimeout = 2 * time.Minute
	requestTimeout   = 30 * time.Second
	// hanging is when a reconciliation is taken for one that will never end: it has
	// not noticed that its time is over.
	hanging = reconcileTimeout + time.Minute
	// slow is when a reconciliation took so long that it is counted.
	slow = time.Second
	// muchWork is after how many reconciliations the operator is said to be quiet, when
	// there were no more than littleWork in a time of quietAfter: of many machines there
	// is always one about which something is to be done.
	muchWork   = 1000
	littleWork = 50
	quietAfter = 10 * time.Second
)

// gate is before every reconciliation: each waits until the operator leads and the
// caches follow the API server, and then has a limited time. Workers that wait here
// keep nobody from anything: there is nothing that may be done.
type gate struct {
	leading *leading
	server  *apiServer
	now     func() time.Time
	slow    *prometheus.CounterVec

	mu sync.Mutex
	// running are the reconciliations that are under way.
	running map[*passing]bool
	// quiet, if not nil, is called when hardly anything is left to do of much; done is how
	// many reconciliations there were since, and counted how many there were when rest was
	// set, which is when to look; it is nil if that is not waited for.
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

// before puts the gate before a reconciler.
func (g *gate) before(controller string, r reconcile.Reconciler) reconcile.Reconciler {
	counted := g.slow.WithLabelValues(controller) // which is there from the beginning, as 0
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
			// What was interrupted is looked at anew when this operator leads again.
			return ctrl.Result{RequeueAfter: time.Millisecond}, nil
		}
		return result, err
	})
}

// ended notes the end of a reconciliation.
func (g *gate) ended(p *passing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, p)
	if g.done++; g.quiet != nil && g.done >= muchWork && g.rest == nil {
		g.counted, g.rest = g.done, time.AfterFunc(quietAfter, g.rests)
	}
}

// rests tells that the operator is quiet, if it is, or looks again later.
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

// open waits for a term in which something may be done.
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

// healthy fails when a reconciliation hangs.
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
