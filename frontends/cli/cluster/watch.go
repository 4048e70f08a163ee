package cluster

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/vmop/sdk/vmop/spec"
)

// ErrDeleted reports that an awaited machine was deleted.
var ErrDeleted = errors.New("the machine was deleted")

// Follow calls look with each state of a machine, from that of vm on, until look returns true or an
// error, or ctx ends, whose cause is then the error.
func (c *Client) Follow(ctx context.Context, vm *spec.VirtualMachine, look func(*spec.VirtualMachine) (bool, error)) error {
	done, err := look(vm)
	if done || err != nil {
		return err
	}
	resource := c.dynamic.Resource(machines).Namespace(vm.Namespace)
	selector := fields.OneTermEqualSelector("metadata.name", vm.Name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return resource.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return resource.Watch(ctx, o)
		},
	}
	// The informer behind it lists again what a broken watch missed.
	_, err = watchtools.UntilWithSync(ctx, lw, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return false, nil
		}
		if e.Type == watch.Deleted || o.GetUID() != vm.UID {
			return false, fmt.Errorf("%s/%s: %w", vm.Namespace, vm.Name, ErrDeleted)
		}
		now, err := decode(o)
		if err != nil {
			return false, err
		}
		return look(now)
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
