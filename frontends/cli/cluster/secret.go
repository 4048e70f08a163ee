package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Secrets lists the secrets with the given labels.
func (c *Client) Secrets(ctx context.Context, namespace string, with map[string]string) ([]corev1.Secret, error) {
	list, err := c.dynamic.Resource(secrets).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(with).String()})
	if err != nil {
		return nil, fmt.Errorf("list the secrets: %w", err)
	}
	out := make([]corev1.Secret, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &out[i]); err != nil {
			return nil, fmt.Errorf("secret %s/%s cannot be understood: %w", namespace, list.Items[i].GetName(), err)
		}
	}
	return out, nil
}

// Secret reads a secret.
func (c *Client) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	o, err := c.dynamic.Resource(secrets).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read secret %s/%s: %w", namespace, name, err)
	}
	out := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out); err != nil {
		return nil, fmt.Errorf("secret %s/%s cannot be understood: %w", namespace, name, err)
	}
	return out, nil
}
