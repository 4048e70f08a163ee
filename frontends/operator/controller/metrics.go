package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

type writeCounter struct{ total *prometheus.CounterVec }

func newWriteCounter(to prometheus.Registerer) (*writeCounter, error) {
	c, err := register(to, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vmop_api_writes_total",
		Help: "Requests by which the operator changed objects, by verb, kind and result: OK or the reason of the API server.",
	}, []string{"verb", "kind", "result"}))
	return &writeCounter{c}, err
}

func newSlowCounter(to prometheus.Registerer) (*prometheus.CounterVec, error) {
	return register(to, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vmop_slow_reconciliations_total",
		Help: "Reconciliations that took more than a second, by controller. What they wait for before they begin does not count.",
	}, []string{"controller"}))
}

func (w *writeCounter) count(verb, kind string, err error) {
	result := "OK"
	if err != nil {
		if result = string(apierrors.ReasonForError(err)); result == "" {
			result = "Unreachable"
		}
	}
	w.total.WithLabelValues(verb, kind, result).Inc()
}

func newEndCounter(to prometheus.Registerer) (*prometheus.CounterVec, error) {
	return register(to, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vmop_machine_ends_total",
		Help: "Ends of machines other than on request of their specification, by cause, such as GuestPanic; vmop_guest_panics_total has those that a machine outlives, too.",
	}, []string{"cause"}))
}

// ends are the causes that are counted by name: others come from whoever wrote the end of a pod,
// and their number is unbounded.
var ends = []string{"GuestShutdown", "GuestReset", "GuestPanic", "HostRequest", "HostForced", "HostQuit", "QemuFailure", "HelperFailure", "StartFailure", "Evicted", "OOMKilled", "PodFailed", "PodSucceeded"}

func endNamed(cause string) string {
	if slices.Contains(ends, cause) {
		return cause
	}
	return "Other"
}

func newPanicCounter(to prometheus.Registerer) (prometheus.Counter, error) {
	return register(to, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "vmop_guest_panics_total",
		Help: "Panics that guests have told of (spec.vm.panicDevice), whether their machines went on or ended, while this operator led.",
	}))
}

// panicsTold counts the panics by which a version of a machine exceeds the previous one. Those that
// an operator finds at its start were counted by its predecessor.
func panicsTold(total prometheus.Counter, leads func() bool) handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[ctrl.Request]) {
		before, is := e.ObjectOld.(*machine)
		now, are := e.ObjectNew.(*machine)
		if is && are && leads() {
			total.Add(float64(morePanics(before, now)))
		}
	}}
}

// morePanics returns the increase, at least 0: the count restarts when a machine is started or
// replaced by another of its name.
func morePanics(before, now *machine) int64 {
	was := before.panics
	if before.UID != now.UID || now.panics < was {
		was = 0
	}
	return max(now.panics-was, 0)
}

// register adds a collector, or returns the one already registered: controller-runtime has one
// registry for all managers of a process.
func register[C prometheus.Collector](to prometheus.Registerer, c C) (C, error) {
	err := to.Register(c)
	if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
		if old, ok := already.ExistingCollector.(C); ok {
			return old, nil
		}
	}
	return c, err
}

type census struct {
	machines, waiting *prometheus.Desc

	mu    sync.Mutex
	cache cache.Cache
	leads func() bool
}

func newCensus() *census {
	return &census{
		machines: prometheus.NewDesc("vmop_machines", "Machines by phase.", []string{"phase"}, nil),
		waiting: prometheus.NewDesc("vmop_machines_waiting",
			"Machines that are not as they should be, by the condition and the reason that explain it.", []string{"condition", "reason"}, nil),
	}
}

// of sets the cache whose machines are counted while its operator leads.
func (c *census) of(from cache.Cache, leads func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cache, c.leads = from, leads
}

// Describe implements prometheus.Collector.
func (c *census) Describe(out chan<- *prometheus.Desc) { out <- c.machines; out <- c.waiting }

// Collect implements prometheus.Collector.
func (c *census) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	from, leads := c.cache, c.leads
	c.mu.Unlock()
	if leads == nil || !leads() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if !filled(ctx, from, &machine{}) {
		// The count is unknown; the other metrics must not wait for it, nor must the end of the
		// process.
		return
	}
	var list machineList
	if err := from.List(ctx, &list); err != nil {
		out <- prometheus.NewInvalidMetric(c.machines, err)
		return
	}
	phases := map[string]int{}
	for _, p := range allPhases {
		phases[p] = 0
	}
	waiting := map[wait]int{}
	for i := range list.Items {
		phases[list.Items[i].phase]++
		for _, w := range list.Items[i].waits {
			waiting[w]++
		}
	}
	for phase, n := range phases {
		out <- prometheus.MustNewConstMetric(c.machines, prometheus.GaugeValue, float64(n), phase)
	}
	for w, n := range waiting {
		out <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(n), w.condition, w.reason)
	}
}
