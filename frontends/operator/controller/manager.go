package controller

import (
	"context"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
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

// GCPercent is what a program that is only an operator passes to debug.SetGCPercent. Most of its
// memory are caches that hardly change: collecting more often than Go's default costs little and
// saves a third of the resident memory.
const GCPercent = 40

func machineRegistration() registration {
	return registration{
		kind: spec.KindVirtualMachine, resource: spec.ResourceVirtualMachines,
		object: func() client.Object { return &machine{} },
		list:   func() client.ObjectList { return &machineList{} },
		add:    addMachines,
	}
}

func addMachines(s *setup) error {
	concurrency := s.options.Concurrency
	if concurrency <= 0 {
		concurrency = DefaultConcurrency
	}
	ends, err := newEndCounter(metrics.Registry)
	if err != nil {
		return err
	}
	panics, err := newPanicCounter(metrics.Registry)
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
			Watches(&machine{}, panicsTold(panics, s.gate.leading.is)).
			Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(find.machinesOfPod)).
			Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(find.machine)).
			Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(find.machine)).
			Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(find.machine)).
			Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(find.machinesOfClaim)).
			Watches(&pool{}, handler.EnqueueRequestsFromMapFunc(find.machinesOfPool), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	})
}

func fairQueues(workers int) func(string, workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
		return newFairQueue(name, workers, limiter)
	}
}

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

// ofClaim returns the machines that may use a claim. Whether one with a matching name really uses
// it is not checked: reconciling the few that do not is cheaper.
func (f finder) ofClaim(ctx context.Context, namespace, claim string) []string {
	names, into := f.names(ctx, namespace, byClaim, claim), &machine{}
	for _, name := range objects.ClaimMachines(claim) {
		if found, err := get(ctx, f.cache, types.NamespacedName{Namespace: namespace, Name: name}, into); found && err == nil {
			names = append(names, name)
		}
	}
	return names
}

// names returns the names of the machines of an index. A cache that cannot be read is stopping.
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
