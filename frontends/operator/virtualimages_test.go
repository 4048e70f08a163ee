package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// An image is filled once by a pod, and kept: disks are made of it, several at a time,
// and another image; it cannot be changed, goes when nobody uses it, and no machine has
// its claim.
func TestVirtualImages(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	d := t.virtualDisks()
	all, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	images := all.Resource(spec.GroupVersion().WithResource(spec.ResourceImages)).Namespace(t.namespace)
	make := func(name, content string) {
		t.Helper()
		text := fmt.Sprintf("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualImage\nmetadata: {name: %s}\nspec: %s\n", name, content)
		if _, err := images.Create(t.Context(), d.object(text), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	becomes := func(name string, phase spec.ImagePhase, reason string) *spec.VirtualImage {
		t.Helper()
		out := &spec.VirtualImage{}
		t.eventually(name+" is "+string(phase), func() error {
			u, err := images.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			*out = spec.VirtualImage{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
				return err
			}
			c := spec.FindCondition(out.Status.Conditions, conditions.Ready)
			if out.Status.Phase != phase || c == nil || c.Reason != reason || c.Message == "" {
				return fmt.Errorf("want %s, %s: %+v", phase, reason, out.Status)
			}
			return nil
		})
		return out
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("/Operator: {runnerImage: \"registry.test/runner:1\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	operator := t.start(cluster.Kubeconfig(), "--config="+config)

	make("golden", "{persistentVolumeClaim: {size: 1Gi, storageClassName: fast}, dataSource: {type: HTTP, http: {url: 'http://images.test/a.qcow2'}}}")
	make("setup", "{persistentVolumeClaim: {size: 1Gi, accessMode: ReadWriteMany}, dataSource: {type: ObjectRef, objectRef: {kind: VirtualImage, name: golden}}}")
	make("inside", "{persistentVolumeClaim: {size: 1Gi}, dataSource: {type: HTTP, http: {url: 'http://169.254.169.254/latest'}}}")
	d.make("one", "{persistentVolumeClaim: {size: 5Gi}, dataSource: {type: ObjectRef, objectRef: {kind: VirtualImage, name: golden}}}")
	d.make("small", "{persistentVolumeClaim: {size: 1Gi}, dataSource: {type: ObjectRef, objectRef: {kind: VirtualImage, name: golden}}}")
	becomes("inside", spec.ImagePending, conditions.ReasonDiskSourceNotAllowed)
	becomes("setup", spec.ImagePending, conditions.ReasonDiskSourceNotReady)
	d.becomes("one", spec.DiskPending, conditions.ReasonDiskSourceNotReady)

	becomes("golden", spec.ImageProvisioning, conditions.ReasonPodNotStarted)
	d.volume("golden-vi", "1Gi")
	pod := d.ends("golden-vi-import", `{"format":"qcow2","size":3221225472,"stored":346030080}`, corev1.PodSucceeded)
	golden := becomes("golden", spec.ImageReady, conditions.ReasonImageReady)
	if s := golden.Status; s.Format != "qcow2" || s.Size == nil || s.Size.String() != "3Gi" || s.StoredSize == nil || s.StoredSize.String() != "330Mi" || s.Target == nil || s.Target.PersistentVolumeClaim != "golden-vi" {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(pod.Spec.Containers[0].Env[0].Value, `"keep":true`) || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("%+v", pod.Spec)
	}
	claim, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).Get(t.Context(), "golden-vi", metav1.GetOptions{})
	if err != nil || claim.OwnerReferences[0].UID != golden.UID || claim.Labels[names.LabelImage] != "golden" || claim.Annotations[names.AnnotationFilled] != string(golden.UID) {
		t.Errorf("%v: %+v", err, claim)
	}

	// Those that wait for it look every ten seconds. Both copy it at the same time.
	becomes("setup", spec.ImageProvisioning, conditions.ReasonPodNotStarted)
	d.becomes("one", spec.DiskProvisioning, conditions.ReasonPodNotStarted)
	d.becomes("small", spec.DiskFailed, conditions.ReasonDiskImportFailed)
	if err := images.Delete(t.Context(), "golden", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	becomes("golden", spec.ImageTerminating, conditions.ReasonDiskAttached)
	d.volume("setup-vi", "1Gi")
	d.ends("setup-vi-import", `{"format":"iso","size":1048576,"stored":1048576}`, corev1.PodSucceeded)
	becomes("setup", spec.ImageReady, conditions.ReasonImageReady)
	d.volume("one-vd", "5Gi")
	pod = d.ends("one-vd-import", `{"format":"qcow2","size":3221225472}`, corev1.PodSucceeded)
	if got := objects.PodClaims(pod); !slices.Equal(got, []string{"one-vd", "golden-vi"}) {
		t.Errorf("%v", got)
	}
	if got := d.becomes("one", spec.DiskReady, conditions.ReasonDiskReady); got.Status.Format != "qcow2" {
		t.Errorf("%+v", got.Status)
	}
	d.gone("the image", func() error { _, err := images.Get(t.Context(), "golden", metav1.GetOptions{}); return err })

	// What an image is nobody changes.
	for body, want := range map[string]string{
		`{"spec":{"persistentVolumeClaim":{"size":"2Gi"}}}`:                       "cannot be changed",
		`{"spec":{"dataSource":{"objectRef":{"name":"other"}}}}`:                  "cannot be changed",
		`{"spec":{"persistentVolumeClaim":{"accessMode":"ReadWriteOnce"}}}`:       "cannot be changed",
		`{"spec":{"persistentVolumeClaim":{"storageClassName":"another-class"}}}`: "cannot be changed",
	} {
		if _, err := images.Patch(t.Context(), "setup", types.MergePatchType, []byte(body), metav1.PatchOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}

	// No machine has the claim, which it could write to.
	vm := strings.Replace(machine("web", "Running"), "disks:", "disks:\n    - persistentVolumeClaim: {claimName: setup-vi}", 1)
	t.create(vm)
	t.eventually("the machine is told", func() error {
		u, err := t.vms.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if text := fmt.Sprint(u.Object["status"]); !strings.Contains(text, spec.ReasonClaimOfImage) || !strings.Contains(text, "VirtualImage setup") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	if _, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a pod: %v", err)
	}
	if code := operator.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, operator.log)
	}
}
