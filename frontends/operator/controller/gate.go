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
	// there was none for quietAfter.
	muchWork   = 1000
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
	// quiet, if not nil, is called when nothing is left to do of much; done is how many
	// reconciliations there were since, and rest is when it is time.
	quiet func()
	done  int
	rest  *time.Timer
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
	switch g.done++; {
	case g.quiet == nil || g.done < muchWork:
	case g.rest == nil:
		g.rest = time.AfterFunc(quietAfter, g.rests)
	default:
		g.rest.Reset(quietAfter)
	}
}

// rests tells that the operator is quiet, if it is; whatever is under way asks again
// when it ends.
func (g *gate) rests() {
	g.mu.Lock()
	quiet := g.done >= muchWork && len(g.running) == 0
	if quiet {
		g.done = 0
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
