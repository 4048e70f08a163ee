package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmop/sdk/vmop/reconcile"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Options choose how machines are looked after. The zero value looks after all
// namespaces, alone, and serves neither metrics nor probes.
type Options struct {
	// Settings are what concerns machines.
	Settings reconcile.Settings
	// Namespaces are those that are looked after; none means all.
	Namespaces []string
	// Concurrency is how many machines are reconciled at the same time; 0 means
	// [DefaultConcurrency].
	Concurrency int
	// MetricsAddress and ProbeAddress are where metrics (/metrics) and probes
	// (/healthz, /readyz) are served, as in :8080; empty means nowhere.
	MetricsAddress, ProbeAddress string
	// LeaderElection is nil for an operator that is alone.
	LeaderElection *LeaderElection
	// Log is where the operator tells what it does.
	Log logr.Logger
	// WrapTransport, if not nil, is around all requests, for tests and traces.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// LeaderElection is how several operators agree which of them works.
type LeaderElection struct {
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	// LeaseDuration is how long a leader that is not heard of keeps its place,
	// RenewDeadline how long it goes on without having renewed it, RetryPeriod
	// how often all try. 0 means 15 s, 10 s and 2 s.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultConcurrency is how many machines are reconciled at the same time: most
// of the time a reconciliation waits for the API server.
const DefaultConcurrency = 8

// GCPercent is what a program that is nothing but an operator gives to
// debug.SetGCPercent. Most of its memory is what its caches keep, which hardly
// ever changes: to collect garbage more often than Go does by itself costs little,
// and saves a third of the resident memory.
const GCPercent = 40

// stopTimeout is how long a stop waits for what is being written.
const stopTimeout = 20 * time.Second

// New makes a manager that looks after the machines of a cluster when it is
// started. Starting it ends with an error if leadership was lost.
func New(config *rest.Config, o Options) (manager.Manager, error) {
	config = rest.CopyConfig(config)
	if o.WrapTransport != nil {
		config.Wrap(o.WrapTransport)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, eventsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	addStored(scheme)
	m, err := ctrl.NewManager(config, managerOptions(scheme, o))
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	// What is indexed is watched, which nobody can interrupt before the start.
	if err := addIndexes(context.Background(), m.GetFieldIndexer()); err != nil {
		return nil, err
	}
	writes, err := newWriteCounter(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	counted, err := register(metrics.Registry, newCensus())
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	counted.of(m.GetCache(), m.Elected())
	if err := addMachines(m, o, writes); err != nil {
		return nil, fmt.Errorf("controller of machines: %w", err)
	}
	if err := addAssignments(m, writes); err != nil {
		return nil, fmt.Errorf("controller of assignments: %w", err)
	}
	if err := m.Add(&cleaner{client: m.GetClient(), live: m.GetAPIReader(), writes: writes, namespaces: o.Namespaces, log: o.Log}); err != nil {
		return nil, fmt.Errorf("clean-up: %w", err)
	}
	return m, addProbes(m)
}

func managerOptions(scheme *runtime.Scheme, o Options) manager.Options {
	stop := stopTimeout
	out := manager.Options{
		Scheme: scheme, Cache: cacheOptions(o.Namespaces), Logger: o.Log,
		Metrics:                 server.Options{BindAddress: orNone(o.MetricsAddress)},
		HealthProbeBindAddress:  orNone(o.ProbeAddress),
		GracefulShutdownTimeout: &stop,
	}
	// Names of controllers are unique in a process only for the sake of metrics.
	yes := true
	out.Controller.SkipNameValidation = &yes
	if e := o.LeaderElection; e != nil {
		out.LeaderElection = true
		out.LeaderElectionNamespace, out.LeaderElectionID = e.Namespace, e.Name
		// Nothing is written after the manager has stopped, so that the next
		// leader need not wait.
		out.LeaderElectionReleaseOnCancel = true
		for _, d := range []struct {
			from time.Duration
			to   **time.Duration
		}{{e.LeaseDuration, &out.LeaseDuration}, {e.RenewDeadline, &out.RenewDeadline}, {e.RetryPeriod, &out.RetryPeriod}} {
			if d.from > 0 {
				*d.to = &d.from
			}
		}
	}
	return out
}

func orNone(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

func addMachines(m manager.Manager, o Options, writes *writeCounter) error {
	concurrency := o.Concurrency
	if concurrency <= 0 {
		concurrency = DefaultConcurrency
	}
	r := &machines{
		observer: &observer{cache: m.GetCache(), live: m.GetAPIReader(), settings: o.Settings, now: time.Now},
		executor: &executor{client: m.GetClient(), writes: writes, now: time.Now},
		starts:   newStarts(m.GetAPIReader()),
		events:   m.GetEventRecorder(eventSource),
	}
	find := finder{m.GetCache()}
	return ctrl.NewControllerManagedBy(m).Named("machines").
		For(&machine{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(find.machinesOfPod)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(find.machine)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(find.machine)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(find.machine)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(find.machinesOfClaim)).
		Watches(&pool{}, handler.EnqueueRequestsFromMapFunc(find.machinesOfPool)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, RateLimiter: retries()}).
		Complete(r)
}

// eventSource is the reporting controller of events.
const eventSource = "vm-operator"

// retries is the delay after something that could not be reached.
func retries() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, maxRetry)
}

func addAssignments(m manager.Manager, writes *writeCounter) error {
	r := &assignments{
		cache: m.GetCache(), client: m.GetClient(), writes: writes, now: time.Now,
		events: m.GetEventRecorder(eventSource), told: map[types.UID]string{},
	}
	namespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace()}}}
	})
	return ctrl.NewControllerManagedBy(m).Named("assignments").
		Watches(&machine{}, namespace, builder.WithPredicates(assignmentChanged())).
		Watches(&pool{}, namespace).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: retries()}).
		Complete(r)
}

// addProbes lets a cluster know whether the operator lives and whether it has
// seen the cluster. One that waits to lead is ready.
func addProbes(m manager.Manager) error {
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return m.AddReadyzCheck("caches", func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !m.GetCache().WaitForCacheSync(ctx) {
			return fmt.Errorf("the caches are not filled yet")
		}
		return nil
	})
}

// finder finds the machines that an object matters to.
type finder struct{ cache client.Reader }

// machine is the one that the labels name.
func (f finder) machine(_ context.Context, o client.Object) []ctrl.Request {
	return requests(o.GetNamespace(), instanceOf(o))
}

func (f finder) machinesOfPod(ctx context.Context, o client.Object) []ctrl.Request {
	names := append(instanceOf(o), o.GetName())
	for _, claim := range claimsOf(o) {
		names = append(names, f.ofClaim(ctx, o.GetNamespace(), claim)...)
	}
	return requests(o.GetNamespace(), names)
}

func (f finder) machinesOfClaim(ctx context.Context, o client.Object) []ctrl.Request {
	return requests(o.GetNamespace(), f.ofClaim(ctx, o.GetNamespace(), o.GetName()))
}

func (f finder) machinesOfPool(ctx context.Context, o client.Object) []ctrl.Request {
	return requests(o.GetNamespace(), f.names(ctx, o.GetNamespace(), byPool, o.GetName()))
}

// ofClaim are the machines that may come to use a claim.
func (f finder) ofClaim(ctx context.Context, namespace, claim string) []string {
	names := f.names(ctx, namespace, byClaim, claim)
	for _, name := range reconcile.ClaimMachines(claim) {
		m := &machine{}
		if f.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, m) == nil && slices.Contains(claimsOf(m), claim) {
			names = append(names, name)
		}
	}
	return names
}

// names are those of the machines that an index has. A cache that cannot be
// read is one that stops.
func (f finder) names(ctx context.Context, namespace, index, value string) []string {
	var l machineList
	if f.cache.List(ctx, &l, client.InNamespace(namespace), client.MatchingFields{index: value}) != nil {
		return nil
	}
	var out []string
	for i := range l.Items {
		out = append(out, l.Items[i].Name)
	}
	return out
}

// requests are one for each name.
func requests(namespace string, names []string) []ctrl.Request {
	var out []ctrl.Request
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			out = append(out, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	return out
}
