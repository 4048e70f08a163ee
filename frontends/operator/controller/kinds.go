package controller

import (
	"context"
	"time"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// registration is one kind of the API group that the operator looks after.
type registration struct {
	// kind and resource are its names; object and list make what the caches keep.
	kind, resource string
	object         func() client.Object
	list           func() client.ObjectList
	// add adds its controller.
	add func(*setup) error
}

// keptRegistration registers a kind whose objects the caches keep as they are.
func keptRegistration[T any](kind, resource string, add func(*setup) error) registration {
	return registration{
		kind: kind, resource: resource, add: add,
		object: func() client.Object { return &kept[T]{} },
		list:   func() client.ObjectList { return &keptList[T]{} },
	}
}

// registrations are all kinds that it looks after, which are those of
// [spec.Kinds]. A new one is another line.
func registrations() []registration {
	return []registration{
		machineRegistration(), poolRegistration(), operationRegistration(), classRegistration(),
		diskRegistration(), imageRegistration(), clusterImageRegistration(), attachmentRegistration(),
	}
}

// setup is what controllers are made with.
type setup struct {
	manager manager.Manager
	options Options
	gate    *gate
	reader  *reader
	writes  *writeCounter
	// starts lets pods begin that have claims, one at a time.
	starts *starts
	// forget is called at the beginning of each term, because of what another leader
	// may have made untrue.
	forget []func()
}

func newSetup(m manager.Manager, from *stores, o Options, g *gate, writes *writeCounter, p *preparations, kinds []registration) *setup {
	r := &reader{
		cache: &storesReader{m.GetCache(), from}, live: m.GetAPIReader(), now: time.Now, steady: g.server.steady, kinds: kindsOf(kinds), prepared: p,
	}
	s := &setup{manager: m, options: o, gate: g, writes: writes, reader: r, starts: newStarts(r.live, r.cache, r.now)}
	s.forget = append(s.forget, s.starts.doubt)
	return s
}

// addKind makes an engine of a kind and has a controller call it for what the
// watches find.
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

// stockKinds are the kinds of others that the caches keep, as in [reconcile.Target].
func stockKinds() map[string]func() client.Object {
	return map[string]func() client.Object{
		kindPod:       func() client.Object { return &corev1.Pod{} },
		kindClaim:     func() client.Object { return &corev1.PersistentVolumeClaim{} },
		kindConfigMap: func() client.Object { return &corev1.ConfigMap{} },
		kindSecret:    func() client.Object { return &corev1.Secret{} },
		kindService:   func() client.Object { return &corev1.Service{} },
	}
}

// cachedKind is a kind that the caches keep.
type cachedKind struct {
	object func() client.Object
	// ours: the caches keep all of its objects, whatever labels they have.
	ours bool
	// cluster: they are in no namespace.
	cluster bool
}

// kindsOf are the kinds that the caches keep, by their names.
func kindsOf(kinds []registration) map[string]cachedKind {
	out := map[string]cachedKind{}
	for name, object := range stockKinds() {
		out[name] = cachedKind{object: object}
	}
	for _, r := range kinds {
		out[r.kind] = cachedKind{object: r.object, ours: true, cluster: spec.ClusterScoped(r.kind)}
	}
	return out
}

// addStored makes the kinds known to clients and caches.
func addStored(scheme *runtime.Scheme, kinds []registration) {
	for _, r := range kinds {
		scheme.AddKnownTypeWithName(spec.GroupVersion().WithKind(r.kind), r.object())
		scheme.AddKnownTypeWithName(spec.GroupVersion().WithKind(r.kind+"List"), r.list())
	}
	metav1.AddToGroupVersion(scheme, spec.GroupVersion())
}
