package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmop/sdk/vmop/names"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
)

// Remainder is what a deleted machine has left in a namespace.
type Remainder struct {
	machinekind.Remainder
	Namespace string
}

// Remains finds what deleted machines have left in a namespace, or in all if it is empty, see
// [machinekind.Remains]. It may return findings along with an error: without the right to list
// secrets there are only claims, and a namespace with a machine that cannot be decoded is left out,
// since what that one uses is unknown.
func (c *Client) Remains(ctx context.Context, namespace string) ([]Remainder, error) {
	ours := metav1.ListOptions{LabelSelector: names.LabelName + "=" + names.AppName}
	in := map[string]*machinekind.Namespace{}
	of := func(namespace string) *machinekind.Namespace {
		if in[namespace] == nil {
			in[namespace] = &machinekind.Namespace{}
		}
		return in[namespace]
	}
	if err := each(ctx, c, volumeClaims, namespace, ours, func(claim *corev1.PersistentVolumeClaim) {
		n := of(claim.Namespace)
		n.Claims = append(n.Claims, *claim)
	}); err != nil {
		return nil, fmt.Errorf("list the claims: %w", err)
	}
	var errs []error
	if err := each(ctx, c, secrets, namespace, ours, func(secret *corev1.Secret) {
		n := of(secret.Namespace)
		n.Secrets = append(n.Secrets, *secret)
	}); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list the secrets: %w", err)
	} else if err != nil {
		errs = append(errs, fmt.Errorf("without secrets: %w", err))
	}
	// Their possible users are read last.
	if err := each(ctx, c, pods, namespace, metav1.ListOptions{}, func(pod *corev1.Pod) {
		if n := in[pod.Namespace]; n != nil {
			n.Pods = append(n.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Spec: corev1.PodSpec{Volumes: pod.Spec.Volumes}, Status: corev1.PodStatus{Phase: pod.Status.Phase}})
		}
	}); err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	unknown := map[string]bool{}
	err := c.walk(ctx, machines, namespace, metav1.ListOptions{}, func(o *unstructured.Unstructured) error {
		n := in[o.GetNamespace()]
		if n == nil {
			return nil
		}
		vm, err := decode(o)
		if err != nil {
			errs = append(errs, fmt.Errorf("namespace %s is left out: %w", o.GetNamespace(), err))
			unknown[o.GetNamespace()] = true
			return nil
		}
		n.Machines = append(n.Machines, vm)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the machines: %w", explain(err))
	}
	var out []Remainder
	for _, namespace := range slices.Sorted(maps.Keys(in)) {
		if unknown[namespace] {
			continue
		}
		for _, r := range machinekind.Remains(*in[namespace]) {
			out = append(out, Remainder{r, namespace})
		}
	}
	return out, errors.Join(errs...)
}

func (c *Client) walk(ctx context.Context, kind schema.GroupVersionResource, namespace string, o metav1.ListOptions, found func(*unstructured.Unstructured) error) error {
	o.Limit = 500
	for {
		page, err := c.dynamic.Resource(kind).Namespace(namespace).List(ctx, o)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := found(&page.Items[i]); err != nil {
				return err
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

func each[T any](ctx context.Context, c *Client, kind schema.GroupVersionResource, namespace string, o metav1.ListOptions, found func(*T)) error {
	return c.walk(ctx, kind, namespace, o, func(u *unstructured.Unstructured) error {
		out := new(T)
		data, err := json.Marshal(u.Object)
		if err == nil {
			err = json.Unmarshal(data, out)
		}
		if err != nil {
			return fmt.Errorf("%s %s/%s cannot be understood: %w", kind.Resource, u.GetNamespace(), u.GetName(), err)
		}
		found(out)
		return nil
	})
}

var volumeClaims = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
