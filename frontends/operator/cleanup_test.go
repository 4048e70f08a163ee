package main

import (
	"fmt"
	"maps"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What VM-Operator left behind goes when the operator starts; what belongs to a
// machine or to others stays.
func TestLeftoversAreDeleted(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	core, sets := t.kube.CoreV1(), t.kube.AppsV1().StatefulSets(t.namespace)
	labels := map[string]string{"app.kubernetes.io/name": "vm-runner", "app.kubernetes.io/managed-by": "vm-operator", "app.kubernetes.io/instance": "gone"}
	// Labels alone make nothing VM-Operator's: "restored" has them from somebody else.
	// The pod of "orphan" runs on.
	podLabels := map[string]string{"app.kubernetes.io/component": "vm-runner"}
	maps.Copy(podLabels, labels)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Labels: podLabels}}
	pod.Spec.Containers = []corev1.Container{{Name: "orphan", Image: "example.org/a"}}
	if _, err := core.Pods(t.namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]map[string]string{"gone": labels, "other": nil, "restored": labels, "orphan": labels} {
		by := metav1.CreateOptions{FieldManager: names.FieldManager}
		if name == "restored" {
			by.FieldManager = "backup"
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: l}}
		if _, err := core.ConfigMaps(t.namespace).Create(t.Context(), cm, by); err != nil {
			t.Fatal(err)
		}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: l}}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		set.Spec.Template.Labels = labels
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "example.org/a"}}
		if _, err := sets.Create(t.Context(), set, by); err != nil {
			t.Fatal(err)
		}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "gone-runner-data", Labels: labels}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *quantity("1Mi")}
	if _, err := core.PersistentVolumeClaims(t.namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.start(cluster.Kubeconfig())
	t.eventually("the left-over objects are gone", func() error {
		_, cm := core.ConfigMaps(t.namespace).Get(t.Context(), "gone", metav1.GetOptions{})
		_, set := sets.Get(t.Context(), "gone", metav1.GetOptions{})
		if !apierrors.IsNotFound(cm) || !apierrors.IsNotFound(set) {
			return fmt.Errorf("ConfigMap: %v, StatefulSet: %v", cm, set)
		}
		return nil
	})
	for _, name := range []string{"other", "restored"} {
		if _, err := core.ConfigMaps(t.namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := sets.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	// Both go at the same time, but for what the pod of the one reads.
	if _, err := core.ConfigMaps(t.namespace).Get(t.Context(), "orphan", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if pvc, err := core.PersistentVolumeClaims(t.namespace).Get(t.Context(), "gone-runner-data", metav1.GetOptions{}); err != nil || pvc.DeletionTimestamp != nil {
		t.Errorf("claim: %v", err)
	}
}
