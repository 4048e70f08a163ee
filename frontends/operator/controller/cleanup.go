package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cleaner deletes what VM-Operator left behind, once, when the operator becomes the leader. It
// reads from the API server because the caches do not hold all of these objects.
type cleaner struct {
	client     client.Client
	live       client.Reader
	writes     *writeCounter
	namespaces []string
	without    []string
	log        logr.Logger
	gate       *gate
}

// Start implements controller-runtime's Runnable. Failed deletions are logged and not retried:
// nothing depends on them.
func (c *cleaner) Start(ctx context.Context) error {
	term, err := c.gate.open(ctx)
	if err != nil {
		return nil // the process ends
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(term, cancel)()
	namespaces := c.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, n := range namespaces {
		if err := c.clean(ctx, n); err != nil && ctx.Err() == nil {
			c.log.Info("objects that VM-Operator left behind were not deleted", "reason", err.Error())
		}
	}
	return nil
}

func (c *cleaner) clean(ctx context.Context, namespace string) error {
	objects := map[string][]metav1.PartialObjectMetadata{}
	kinds := map[string]schema.GroupVersionKind{}
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind(kindConfigMap), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	} {
		found, err := c.list(ctx, kind, client.InNamespace(namespace), client.MatchingLabels(objectLabels()))
		if err != nil {
			return err
		}
		kinds[kind.Kind] = kind
		for _, o := range found {
			objects[o.Namespace] = append(objects[o.Namespace], o)
		}
	}
	if len(objects) == 0 {
		return nil
	}
	// In this order, so that a new machine does not lose the objects it was just given.
	found, err := c.list(ctx, spec.GroupVersion().WithKind(spec.KindVirtualMachine), client.InNamespace(namespace))
	if err != nil {
		return err
	}
	machines := map[string][]string{}
	for _, m := range found {
		machines[m.Namespace] = append(machines[m.Namespace], m.Name)
	}
	if found, err = c.list(ctx, corev1.SchemeGroupVersion.WithKind(kindPod), client.InNamespace(namespace), client.MatchingLabels(podLabels())); err != nil {
		return err
	}
	pods := map[string][]string{}
	for _, p := range found {
		pods[p.Namespace] = append(pods[p.Namespace], p.Name)
	}
	var errs []error
	for n, all := range objects {
		if slices.Contains(c.without, n) {
			continue
		}
		for _, l := range machinekind.Leftovers(machines[n], pods[n], all) {
			errs = append(errs, c.delete(ctx, kinds[l.Kind], n, l))
		}
	}
	return errors.Join(errs...)
}

func (c *cleaner) list(ctx context.Context, kind schema.GroupVersionKind, o ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.live.List(ctx, l, o...); err != nil {
		return nil, fmt.Errorf("list the objects of kind %s: %w", kind.Kind, err)
	}
	for i := range l.Items {
		l.Items[i].SetGroupVersionKind(kind)
	}
	return l.Items, nil
}

func (c *cleaner) delete(ctx context.Context, kind schema.GroupVersionKind, namespace string, l machinekind.Leftover) error {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: l.Name}}
	o.SetGroupVersionKind(kind)
	err := c.client.Delete(ctx, o, client.Preconditions{UID: &l.UID})
	c.writes.count("delete", l.Kind, err)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("delete %s %s/%s: %w", l.Kind, namespace, l.Name, err)
	}
	c.log.Info("deleted what VM-Operator left behind", "kind", l.Kind, "namespace", namespace, "name", l.Name)
	return nil
}
