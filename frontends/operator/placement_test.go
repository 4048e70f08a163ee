package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Labels and annotations of a machine come to its pod and go from it while it runs, and
// what is said of machines in an affinity is said of their pods.
func TestLabelsReachTheRunningPod(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.start(cluster.Kubeconfig())
	vm := t.object(machine("web", "Running"))
	vm.SetLabels(map[string]string{"app": "web", "tier": "front"})
	vm.SetAnnotations(map[string]string{"note": "first", "prometheus.io/scrape": "true"})
	vm.Object["spec"].(map[string]any)["affinity"] = map[string]any{"virtualMachineAndPodAntiAffinity": map[string]any{
		"requiredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
			"labelSelector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "topologyKey": "kubernetes.io/hostname",
		}},
	}}
	if _, err := t.vms.Create(t.Context(), vm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.phase("web", spec.PhaseRunning)
	var uid types.UID
	has := func(labels, annotations map[string]string) {
		t.Helper()
		t.eventually("the pod has the labels of its machine", func() error {
			pod, err := t.kube.CoreV1().Pods(t.namespace).Get(context.WithoutCancel(t.Context()), "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, m := range []struct{ has, wants map[string]string }{{pod.Labels, labels}, {pod.Annotations, annotations}} {
				for k, v := range m.wants {
					if got, has := m.has[k]; has != (v != "") || got != v {
						return fmt.Errorf("%s is %q; want %q", k, got, v)
					}
				}
			}
			if uid == "" {
				uid = pod.UID
			}
			if pod.UID != uid {
				t.Fatal("the machine has another pod")
			}
			if a := pod.Spec.Affinity; a == nil || a.PodAntiAffinity == nil || len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 ||
				a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey != corev1.LabelHostname {
				t.Fatalf("affinity %+v", a)
			}
			return nil
		})
	}
	own := map[string]string{names.LabelInstance: "web", names.LabelComponent: names.ComponentRunner}
	with := func(m map[string]string) map[string]string {
		for k, v := range own {
			m[k] = v
		}
		return m
	}
	has(with(map[string]string{"app": "web", "tier": "front"}), map[string]string{"note": "first", "prometheus.io/scrape": ""})

	_, err := t.vms.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata": {
		"labels": {"app": "shop", "tier": null, "zone": "a", "app.kubernetes.io/instance": "other", "pod-template-hash": "1"},
		"annotations": {"note": null, "owner": "ops", "container.apparmor.security.beta.kubernetes.io/web": "unconfined"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	has(with(map[string]string{"app": "shop", "tier": "", "zone": "a", "pod-template-hash": ""}),
		map[string]string{"note": "", "owner": "ops", "container.apparmor.security.beta.kubernetes.io/web": ""})
	if _, err := t.vms.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata": {"labels": null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	has(with(map[string]string{"app": "", "zone": ""}), map[string]string{"owner": "ops"})
	now, err := t.status("web")
	if err != nil {
		t.Fatal(err)
	}
	if s := now.Status; len(s.RestartAwaitingChanges) > 0 || s.Phase != spec.PhaseRunning {
		t.Errorf("status %+v", s)
	}
}

// A machine that is deleted with --cascade=orphan leaves its pod, and the next one of
// its name has it. There is no garbage collector here: the test does what it does.
func TestOrphanedPodIsAdopted(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.start(cluster.Kubeconfig())
	t.create(machine("web", "Running"))
	t.phase("web", spec.PhaseRunning)
	ctx := context.WithoutCancel(t.Context())
	pods := t.kube.CoreV1().Pods(t.namespace)
	pod, err := pods.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	orphan := metav1.DeletePropagationOrphan
	if err := t.vms.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	t.eventually("the machine is let go", func() error {
		vm, err := t.vms.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if f := vm.GetFinalizers(); len(f) != 1 || f[0] != metav1.FinalizerOrphanDependents {
			return fmt.Errorf("finalizers %v", f)
		}
		return nil
	})
	if _, err := pods.Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata": {"ownerReferences": null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := t.vms.Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	t.create(machine("web", "Running"))
	t.eventually("the pod is the new machine's", func() error {
		vm, err := t.vms.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		now, err := pods.Get(ctx, "web", metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case now.UID != pod.UID || now.DeletionTimestamp != nil:
			t.Fatalf("the pod does not run on: %+v", now.ObjectMeta)
		case len(now.OwnerReferences) != 1 || now.OwnerReferences[0].UID != vm.GetUID():
			return fmt.Errorf("owners %v", now.OwnerReferences)
		}
		return nil
	})
	t.waits("web", spec.ConditionPodReady, spec.ReasonPodRunning)
}
