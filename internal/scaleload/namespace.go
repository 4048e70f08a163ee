package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// prepare creates a namespace with the role binding of deploy/runner, if they are not there.
func (l *load) prepare(ctx context.Context, name string) error {
	_, err := l.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: names.OperatorBinding},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "vmop-operator-machines"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "vmop-operator", Namespace: "vmop-system"}},
	}
	if _, err := l.kube.RbacV1().RoleBindings(name).Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// awaitPolicy waits until machines have the finalizer from their creation. The API server refuses
// them for some seconds, until it has read the new definitions.
func (l *load) awaitPolicy(ctx context.Context) error {
	const namespace = "policy"
	if err := l.prepare(ctx, namespace); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		u := (&unstructured.Unstructured{Object: l.template}).DeepCopy()
		u.SetName("tried")
		made, err := l.vms.Namespace(namespace).Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			if slices.Contains(made.GetFinalizers(), names.FinalizerMachine) {
				return nil
			}
			err = fmt.Errorf("machines have the finalizers %q", made.GetFinalizers())
		} else if !apierrors.IsServiceUnavailable(err) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("policy %s: %w", l.policy, err)
		}
	}
}
