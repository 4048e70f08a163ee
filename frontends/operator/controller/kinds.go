package controller

import (
	"context"
	"reflect"
	"time"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func newSetup(m manager.Manager, from *stores, o Options, g *gate, writes *writeCounter, p *preparations, waiting *waitingPods, kinds []registration) *setup {
	r := &reader{
		cache: &storesReader{m.GetCache(), from}, live: m.GetAPIReader(), now: time.Now, steady: g.server.steady, kinds: kindsOf(kinds), prepared: p,
	}
	s := &setup{manager: m, options: o, gate: g, writes: writes, reader: r, starts: newStarts(r.live, r.cache, r.now, waiting.since)}
	s.forget = append(s.forget, s.starts.doubt)
	return s
}

func addKind[S any](s *setup, name string, k kind[S], o controller.Options, watch func(*builder.Builder) *builder.Builder) error {
	e := &engine[S]{
		kind: k, reader: s.reader, events: s.manager.GetEventRecorder(eventSource),
		executor: &executor{client: s.manager.GetClient(), writes: s.writes, now: s.reader.now, leads: s.gate.leading.is},
	}
	s.forget = append(s.forget, e.memories.clear)
	o.RateLimiter = retries()
	b := watch(ctrl.NewControllerManagedBy(s.manager).Named(name)).WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		s.reader.prepared.then(func(namespace string) int {
			waiting := requests(namespace, e.memories.waitingIn(namespace))
			if namespace == k.namespace {
				waiting = append(waiting, requests("", e.memories.waitingIn(""))...)
			}
			for _, r := range waiting {
				queue.Add(r)
			}
			return len(waiting)
		})
		return nil
	}))
	return b.WithOptions(o).Complete(s.gate.before(name, e))
}

func addStored(scheme *runtime.Scheme, kinds []registration) {
	for _, r := range kinds {
		scheme.AddKnownTypeWithName(spec.GroupVersion().WithKind(r.kind), r.object())
		scheme.AddKnownTypeWithName(spec.GroupVersion().WithKind(r.kind+"List"), r.list())
	}
	metav1.AddToGroupVersion(scheme, spec.GroupVersion())
}

func newStores(kinds []registration) *stores {
	s := &stores{of: map[reflect.Type][]toolscache.SharedIndexInformer{}, items: map[reflect.Type]reflect.Type{
		reflect.TypeFor[*corev1.PodList]():       reflect.TypeFor[*corev1.Pod](),
		reflect.TypeFor[*corev1.SecretList]():    reflect.TypeFor[*corev1.Secret](),
		reflect.TypeFor[*corev1.ConfigMapList](): reflect.TypeFor[*corev1.ConfigMap](),
	}}
	for _, r := range kinds {
		s.items[reflect.TypeOf(r.list())] = reflect.TypeOf(r.object())
	}
	return s
}
