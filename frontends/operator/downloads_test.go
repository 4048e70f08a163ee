package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Who asks to download a disk gets a pod, once, and a key that goes with it; a disk that
// somebody else has is given to nobody, also if that one comes later.
func TestDownloadedDisks(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	d := t.virtualDisks()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("/Operator: {runnerImage: \"registry.test/runner:1\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.start(cluster.Kubeconfig(), "--config="+config)
	const pod = "mine-vd-download"
	ask := func(request string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.AnnotationDownloadRequest, request)
		if _, err := d.all.Patch(t.Context(), "mine", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(request string, phase spec.DownloadPhase, says string) *spec.VirtualDiskDownload {
		t.Helper()
		var out spec.VirtualDisk
		t.eventually("the download is "+string(phase), func() error {
			u, err := d.all.Get(t.Context(), "mine", metav1.GetOptions{})
			if err != nil {
				return err
			}
			out = spec.VirtualDisk{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &out); err != nil {
				return err
			}
			if g := out.Status.Download; g == nil || g.Request != request || g.Phase != phase || !strings.Contains(g.Message, says) {
				return fmt.Errorf("want %s, %s, %q: %+v", request, phase, says, g)
			}
			return nil
		})
		return out.Status.Download
	}
	gone := func() {
		t.Helper()
		d.gone("the pod", func() error {
			_, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), pod, metav1.GetOptions{})
			return err
		})
		// As the garbage collector does.
		if err := t.kube.CoreV1().Secrets(t.namespace).Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	key := func() *corev1.Secret {
		t.Helper()
		var out *corev1.Secret
		t.eventually("the pod has a key", func() (err error) {
			out, err = t.kube.CoreV1().Secrets(t.namespace).Get(t.Context(), pod, metav1.GetOptions{})
			return err
		})
		if _, err := tunnel.ParseIdentity(out.Data["tls.crt"], out.Data["tls.key"]); err != nil {
			t.Error(err)
		}
		return out
	}

	d.make("mine", "{persistentVolumeClaim: {size: 1Gi}}")
	ask("r0")
	is("r0", spec.DownloadRefused, "the disk is not there")
	t.eventually("there is a claim", func() error {
		_, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).Get(t.Context(), "mine-vd", metav1.GetOptions{})
		return err
	})
	d.volume("mine-vd", "1Gi")
	d.becomes("mine", spec.DiskReady, conditions.ReasonDiskReady)

	ask("r1")
	first := key()
	got := is("r1", spec.DownloadPending, "waits for its pod")
	if len(first.OwnerReferences) != 1 || first.OwnerReferences[0].UID != got.PodUID {
		t.Errorf("the key goes with %+v, and the pod is %s", first.OwnerReferences, got.PodUID)
	}
	d.tells(pod, "127.77.2.3", "{}")
	is("r1", spec.DownloadReady, pod+" gives it")

	// Somebody who comes later is not read beside.
	user := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{names.LabelName: names.AppName, names.LabelManagedBy: names.ManagedBy, names.LabelComponent: names.ComponentRunner}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "a", Image: "registry.test/a"}},
			Volumes:    []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "mine-vd"}}}},
		},
	}
	if _, err := t.kube.CoreV1().Pods(t.namespace).Create(t.Context(), user, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	is("r1", spec.DownloadRefused, "the disk is used by web")
	gone()
	ask("r2")
	is("r2", spec.DownloadRefused, "the disk is used by web, and nobody reads it beside: stop that machine")
	if err := t.kube.CoreV1().Pods(t.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	t.eventually("nobody has it", func() error {
		if got := d.becomes("mine", spec.DiskReady, conditions.ReasonDiskReady); spec.ConditionIsTrue(got.Status.Conditions, conditions.DiskInUse) {
			return fmt.Errorf("%+v", got.Status.Conditions)
		}
		return nil
	})

	// Each pod has another key, and each request one pod.
	ask("r3")
	if second := key(); string(second.Data["tls.key"]) == string(first.Data["tls.key"]) {
		t.Error("a pod has the key of a former one")
	}
	d.tells(pod, "127.77.2.4", "{}")
	is("r3", spec.DownloadReady, "")
	d.ends(pod, `{"format":"raw","size":1073741824}`, corev1.PodSucceeded)
	is("r3", spec.DownloadEnded, "it was downloaded")
	gone()
	d.becomes("mine", spec.DiskReady, conditions.ReasonDiskReady)
	is("r3", spec.DownloadEnded, "it was downloaded")
	if _, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), pod, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the request is answered again: %v", err)
	}
}
