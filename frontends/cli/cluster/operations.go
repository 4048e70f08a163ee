package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/vmop/sdk/vmop/spec"
)

// ErrNoOperations reports that the cluster has no definition of operations.
var ErrNoOperations = errors.New("the cluster does not know VirtualMachineOperations (apply deploy/definitions of this version)")

// ErrForbidden reports that the user may not create operations.
var ErrForbidden = errors.New("no right to create a VirtualMachineOperation (cluster role vmop-operate)")

// ErrNamespaceTerminating reports that the namespace is being deleted, and takes no operations.
var ErrNamespaceTerminating = errors.New("the namespace is being deleted, and takes no VirtualMachineOperation")

var operations = spec.GroupVersion().WithResource(spec.ResourceOperations)

// Selected lists the machines of a namespace that a label selector selects, all if it is empty,
// sorted by name.
func (c *Client) Selected(ctx context.Context, namespace, selector string) ([]*spec.VirtualMachine, error) {
	list, err := c.dynamic.Resource(machines).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the machines: %w", explain(err))
	}
	var out []*spec.VirtualMachine
	for i := range list.Items {
		vm, err := decode(&list.Items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, vm)
	}
	return out, nil
}

// Operate creates an operation; with dryRun the API server only checks it.
func (c *Client) Operate(ctx context.Context, o *spec.VirtualMachineOperation, dryRun bool) (*spec.VirtualMachineOperation, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	options := metav1.CreateOptions{FieldManager: FieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	made, err := c.dynamic.Resource(operations).Namespace(o.Namespace).Create(ctx, &unstructured.Unstructured{Object: content}, options)
	switch {
	case missingKind(err):
		return nil, ErrNoOperations
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, fmt.Errorf("%s: %w", o.Namespace, ErrNamespaceTerminating)
	case apierrors.IsForbidden(err) && !refusedByPolicy(err):
		return nil, fmt.Errorf("%w: %w", ErrForbidden, err)
	case err != nil:
		return nil, fmt.Errorf("create an operation on %s/%s: %w", o.Namespace, o.Spec.VirtualMachineName, err)
	}
	return decodeOperation(made)
}

// refusedByPolicy reports whether the user has the right, and an admission policy or a quota
// refuses the object: what an administrator refuses must not be done in another way.
func refusedByPolicy(err error) bool {
	return !strings.Contains(err.Error(), "cannot create resource")
}

func decodeOperation(o *unstructured.Unstructured) (*spec.VirtualMachineOperation, error) {
	out := &spec.VirtualMachineOperation{}
	data, err := json.Marshal(o.Object)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return nil, fmt.Errorf("operation %s/%s cannot be understood: %w", o.GetNamespace(), o.GetName(), err)
	}
	return out, nil
}

// AwaitOperation waits until an operation has ended, and returns its last state, with the cause of
// the context's end if that came first. It calls look with each state, from that of o on.
func (c *Client) AwaitOperation(ctx context.Context, o *spec.VirtualMachineOperation, look func(*spec.VirtualMachineOperation)) (*spec.VirtualMachineOperation, error) {
	resource := c.dynamic.Resource(operations).Namespace(o.Namespace)
	selector := fields.OneTermEqualSelector("metadata.name", o.Name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, l metav1.ListOptions) (runtime.Object, error) {
			l.FieldSelector = selector
			return resource.List(ctx, l)
		},
		WatchFuncWithContext: func(ctx context.Context, l metav1.ListOptions) (watch.Interface, error) {
			l.FieldSelector = selector
			return resource.Watch(ctx, l)
		},
	}
	last := o
	look(o)
	exists := func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return false, fmt.Errorf("operation %s/%s was deleted", o.Namespace, o.Name)
		}
		return false, nil
	}
	_, err := watchtools.UntilWithSync(ctx, lw, &unstructured.Unstructured{}, exists, func(e watch.Event) (bool, error) {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return false, nil
		}
		if e.Type == watch.Deleted || u.GetUID() != o.UID {
			return false, fmt.Errorf("operation %s/%s was deleted", o.Namespace, o.Name)
		}
		now, err := decodeOperation(u)
		if err != nil {
			return false, err
		}
		last = now
		look(now)
		return now.Status.Phase.Finished(), nil
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return last, err
}
