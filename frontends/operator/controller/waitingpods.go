package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// waitingPods watches the pods of others that do not run yet, which tells [starts] whether a claim
// that was only just created is awaited by one. A pod changes a few times while it waits, and often
// while it runs.
type waitingPods struct {
	cache cache.Cache

	mu      sync.Mutex
	watches []*patientWatch // one for each namespace, or one for all
	told    toolscache.ResourceEventHandlerRegistration
}

func newWaitingPods(m manager.Manager, o Options, server *apiServer) (*waitingPods, error) {
	out := &waitingPods{}
	options := cache.Options{
		HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(),
		DefaultUnsafeDisableDeepCopy: new(true),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Namespaces: waitingIn(o.Namespaces, o.Without), Transform: condensed(claimsOnly)},
		},
		NewInformer: func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			w := &patientWatch{of: toolscache.ToListerWatcherWithContext(lw), server: server, beside: true}
			out.mu.Lock()
			defer out.mu.Unlock()
			out.watches = append(out.watches, w)
			return toolscache.NewSharedIndexInformer(w, object, resync, indexers)
		},
	}
	var err error
	out.cache, err = cache.New(m.GetConfig(), options)
	return out, err
}

// waitingIn selects the pods of others that wait, in some namespaces or in all.
func waitingIn(namespaces, without []string) map[string]cache.Config {
	selected := []fields.Selector{fields.OneTermEqualSelector("status.phase", string(corev1.PodPending))}
	for _, n := range without {
		selected = append(selected, fields.OneTermNotEqualSelector("metadata.namespace", n))
	}
	if len(namespaces) == 0 {
		namespaces = []string{cache.AllNamespaces}
	}
	out := map[string]cache.Config{}
	for _, n := range namespaces {
		out[n] = cache.Config{LabelSelector: unwatchedPods(), FieldSelector: fields.AndSelectors(selected...)}
	}
	return out
}

func claimsOnly(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out.Spec.Volumes = append(out.Spec.Volumes, v)
		}
	}
	return out
}

// tell has the starts know of the pods, once the watch is started.
func (p *waitingPods) tell(ctx context.Context, s *starts) error {
	informer, err := p.cache.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("pods of others that wait: %w", err)
	}
	awaits := func(o any) {
		if pod, is := o.(*corev1.Pod); is {
			s.awaits(pod)
		}
	}
	told, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    awaits,
		UpdateFunc: func(_, o any) { awaits(o) },
		DeleteFunc: func(o any) {
			if gone, is := o.(toolscache.DeletedFinalStateUnknown); is {
				o = gone.Obj
			}
			if pod, is := o.(*corev1.Pod); is {
				s.awaitsNoMore(pod)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("pods of others that wait: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = told
	return nil
}

// since is since when every change of the pods is seen, zero if they are not watched.
func (p *waitingPods) since() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told == nil || !p.told.HasSynced() || len(p.watches) == 0 {
		return time.Time{}
	}
	var out time.Time
	for _, w := range p.watches {
		at := w.unbroken()
		if at.IsZero() {
			return at
		}
		if at.After(out) {
			out = at
		}
	}
	return out
}

// Start implements controller-runtime's Runnable.
func (p *waitingPods) Start(ctx context.Context) error { return p.cache.Start(ctx) }
