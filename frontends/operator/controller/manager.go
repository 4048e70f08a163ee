package controller

import (
	"context"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Options choose how machines are looked after. The zero value looks after all
// namespaces, alone, and serves neither metrics nor probes.
type Options struct {
	// Settings are what concerns machines.
	Settings objects.Settings
	// Namespaces are those that are looked after; none means all but those in
	// Without, of which there may be some only then.
	Namespaces, Without []string
	// Concurrency is how many machines are reconciled at the same time; 0 means
	// [DefaultConcurrency].
	Concurrency int
	// Operations says which finished operations are kept.
	Operations operation.Cleanup
	// MetricsAddress and ProbeAddress are where metrics (/metrics) and probes
	// (/healthz, /readyz) are served, as in :8080; empty means nowhere.
	MetricsAddress, ProbeAddress string
	// LeaderElection is nil for an operator that is alone.
	LeaderElection *LeaderElection
	// Log is where the operator tells what it does.
	Log logr.Logger
	// Quiet, if not nil, is called when the operator has hardly anything to do after it
	// had much, such as to look at all machines for the first time. A program can give
	// memory back then that it needed for that.
	Quiet func()
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
// of the time a reconciliation waits for the API server. One namespace has half of
// it at most.
const DefaultConcurrency = 16

// GCPercent is what a program that is nothing but an operator gives to
// debug.SetGCPercent. Most of its memory is what its caches keep, which hardly
// ever changes: to collect garbage more often than Go does by itself costs little,
// and saves a third of the resident memory.
const GCPercent = 40

func machineRegistration() registration {
	return registration{
		kind: spec.KindVirtualMachine, resource: spec.ResourceVirtualMachines,
		object: func() client.Object { return &machine{} },
		list:   func() client.ObjectList { return &machineList{} },
		add:    addMachines,
	}
}

// addMachines adds the controller of machines.
func addMachines(s *setup) error {
	concurrency := s.options.Concurrency
	if concurrency <= 0 {
		concurrency = DefaultConcurrency
	}
	ends, err := newEndCounter(metrics.Registry)
	if err != nil {
		return err
	}
	k := &machines{
		reader: s.reader, settings: s.options.Settings, ends: ends,
		starts: s.starts,
	}
	find := finder{cache: s.reader.cache, starts: k.starts}
	o := controller.Options{MaxConcurrentReconciles: concurrency, NewQueue: fairQueues(concurrency)}
	return addKind(s, "machines", k.kind(), o, func(b *builder.Builder) *builder.Builder {
		if _, readable := s.reader.kinds[spec.KindClass]; readable {
			b.Watches(&storedClass{}, handler.EnqueueRequestsFromMapFunc(find.machinesOfClass))
		}
		if _, readable := s.reader.kinds[spec.KindAttachment]; readable {
			b.Watches(&storedAttachment{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
				return requests(o.GetNamespace(), attachedTo(o))
			}))
		}
		return b.For(&machine{}).
			Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(find.machinesOfPod)).
			Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(find.machine)).
			Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(find.machine)).
			Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(find.machine)).
			Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(find.machinesOfClaim)).
			Watches(&pool{}, handler.EnqueueRequestsFromMapFunc(find.machinesOfPool), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	})
}

// fairQueues makes the queues of a controller.
func fairQueues(workers int) func(string, workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
		return newFairQueue(name, workers, limiter)
	}
}

// eventSource is the reporting controller of events.
const eventSource = "vm-operator"

// retries is the delay after something that could not be reached.
func retries() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, maxRetry)
}

// finder finds the machines that an object matters to.
type finder struct {
	cache  client.Reader
	starts *starts
}

// machine is the one that the labels name.
func (f finder) machine(_ context.Context, o client.Object) []ctrl.Request {
	return requests(o.GetNamespace(), instanceOf(o))
}

func (f finder) machinesOfPod(ctx context.Context, o client.Object) []ctrl.Request {
	names := podMachines(o)
	pod, is := o.(*corev1.Pod)
	if !is {
		return nil
	}
	f.starts.saw(pod)
	for _, claim := range objects.PodClaims(pod) {
		names = append(names, f.ofClaim(ctx, o.GetNamespace(), claim)...)
	}
	return requests(o.GetNamespace(), names)
}

func (f finder) machinesOfClaim(ctx context.Context, o client.Object) []ctrl.Request {
	if o.GetName() == names.ImageRepositoryClaim {
		return requests(o.GetNamespace(), f.all(ctx, o.GetNamespace()))
	}
	return requests(o.GetNamespace(), append(f.ofClaim(ctx, o.GetNamespace(), o.GetName()), f.names(ctx, o.GetNamespace(), byShare, o.GetName())...))
}

func (f finder) machinesOfPool(ctx context.Context, o client.Object) []ctrl.Request {
	return requests(o.GetNamespace(), f.names(ctx, o.GetNamespace(), byPool, o.GetName()))
}

// ofClaim are the machines that may come to use a claim. Whether one that has the
// name for it really does is not looked at: that takes more than another look at
// the few of them that do not.
func (f finder) ofClaim(ctx context.Context, namespace, claim string) []string {
	names, into := f.names(ctx, namespace, byClaim, claim), &machine{}
	for _, name := range objects.ClaimMachines(claim) {
		if found, err := get(ctx, f.cache, types.NamespacedName{Namespace: namespace, Name: name}, into); found && err == nil {
			names = append(names, name)
		}
	}
	return names
}

// names are those of the machines that an index has. A cache that cannot be
// read is one that stops.
func (f finder) names(ctx context.Context, namespace, index, value string) []string {
	var l machineList
	if list(ctx, f.cache, &l, index, namespace, value) != nil {
		return nil
	}
	var out []string
	for i := range l.Items {
		out = append(out, l.Items[i].Name)
	}
	return out
}

// all are the names of the machines of a namespace.
func (f finder) all(ctx context.Context, namespace string) []string {
	var l machineList
	if f.cache.List(ctx, &l, client.InNamespace(namespace)) != nil {
		return nil
	}
	out := make([]string, len(l.Items))
	for i := range l.Items {
		out[i] = l.Items[i].Name
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
