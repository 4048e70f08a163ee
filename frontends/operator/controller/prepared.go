package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmop/sdk/vmop/names"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
)

// preparation is an object that a namespace needs for its machines and that the operator does not
// read: its absence shows in what the API server refuses.
type preparation struct {
	resource schema.GroupVersionResource
	name     string
}

// preparedBy lists the objects that deploy/ and the commands named in conditions create.
func preparedBy() []preparation {
	bindings := rbacv1.SchemeGroupVersion.WithResource("rolebindings")
	return []preparation{
		{corev1.SchemeGroupVersion.WithResource("serviceaccounts"), names.ServiceAccount},
		{bindings, names.OperatorBinding},
		{bindings, names.ClaimsBinding},
	}
}

// preparations notices when a namespace gets the objects that its machines need, so that machines
// retry what was refused. It is not part of the caches: an operator of an earlier installation,
// without the right to watch, still works, and retries after its delays.
type preparations struct {
	client     metadata.Interface
	namespaces []string
	server     *apiServer
	log        logr.Logger
	now        func() time.Time
	// refused limits the report that watching is forbidden to one.
	refused sync.Once

	mu sync.Mutex
	// at is when a namespace last got such an object.
	at map[string]time.Time
	// goOn is called with a namespace that got an object, and returns the number of subjects woken.
	goOn []func(namespace string) int
}

// Start implements controller-runtime's Runnable.
func (p *preparations) Start(ctx context.Context) error {
	namespaces := p.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var all sync.WaitGroup
	defer all.Wait()
	for _, what := range preparedBy() {
		for _, n := range namespaces {
			informer, err := p.informer(what, n)
			if err != nil {
				return fmt.Errorf("watch %s %s: %w", what.resource.Resource, what.name, err)
			}
			all.Go(func() { informer.RunWithContext(ctx) })
		}
	}
	return nil
}

// informer watches the objects of one name, as the operator's role permits.
func (p *preparations) informer(what preparation, namespace string) (toolscache.SharedIndexInformer, error) {
	only, from := fields.OneTermEqualSelector(metav1.ObjectNameField, what.name).String(), p.client.Resource(what.resource).Namespace(namespace)
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return from.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return from.Watch(ctx, o)
		},
	}
	out := toolscache.NewSharedIndexInformer(&patientWatch{of: lw, server: p.server, beside: true}, &metav1.PartialObjectMetadata{}, 0, nil)
	if err := out.SetWatchErrorHandlerWithContext(p.failed); err != nil {
		return nil, err
	}
	if err := out.SetTransform(condensed(bare)); err != nil {
		return nil, err
	}
	_, err := out.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: p.got,
		UpdateFunc: func(before, o any) {
			if versionOf(before) != versionOf(o) {
				p.got(o)
			}
		},
		DeleteFunc: p.lost,
	})
	return out, err
}

func bare(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}
}

func versionOf(o any) string {
	if m, err := meta.Accessor(o); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}

// failed is called when a watch fails, which is retried.
func (p *preparations) failed(ctx context.Context, r *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
		return
	}
	p.refused.Do(func() {
		p.log.Info("that a namespace gets what its machines need will be noticed later than it could be: the operator may not watch for it, a right that deploy/access gives", "reason", err.Error())
	})
}

func (p *preparations) got(o any) {
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	namespace := m.GetNamespace()
	p.mu.Lock()
	p.at[namespace] = p.now()
	goOn := slices.Clone(p.goOn)
	p.mu.Unlock()
	n := 0
	for _, f := range goOn {
		n += f(namespace)
	}
	if n > 0 {
		p.log.Info("a namespace got what its machines need", "namespace", namespace, "object", m.GetName(), "waiting", n)
	}
}

// lost forgets a namespace, which may have been deleted.
func (p *preparations) lost(o any) {
	if gone, is := o.(toolscache.DeletedFinalStateUnknown); is {
		o = gone.Obj
	}
	if m, err := meta.Accessor(o); err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.at, m.GetNamespace())
	}
}

func (p *preparations) then(goOn func(namespace string) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.goOn = append(p.goOn, goOn)
}

func (p *preparations) since(namespace string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at[namespace]
}
