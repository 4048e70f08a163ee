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
	"k8s.io/apimachinery/pkg/types"
)

// A disk of an upload waits for somebody who asks to upload; for that one there is a pod,
// once, with a key that the disk owns. What is no disk is told, and another upload may be
// one.
func TestUploadedDisks(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	d := t.virtualDisks()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("/Operator: {runnerImage: \"registry.test/runner:1\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "taken-vd-transfer", Labels: map[string]string{names.LabelName: names.AppName, names.LabelComponent: names.ComponentTransfer}}}
	if _, err := t.kube.CoreV1().Secrets(t.namespace).Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.start(cluster.Kubeconfig(), "--config="+config)
	ask := func(name, request string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.AnnotationUploadRequest, request)
		if _, err := d.all.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pods := func() int {
		t.Helper()
		l, err := t.kube.CoreV1().Pods(t.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Items)
	}
	says := func(disk *spec.VirtualDisk, want string) {
		t.Helper()
		if c := spec.FindCondition(disk.Status.Conditions, conditions.Ready); !strings.Contains(c.Message, want) {
			t.Errorf("want %q: %s", want, c.Message)
		}
	}

	d.make("mine", "{persistentVolumeClaim: {size: 1Gi}, dataSource: {type: Upload}}")
	d.make("taken", "{persistentVolumeClaim: {size: 1Gi}, dataSource: {type: Upload, upload: {checksum: {sha256: "+strings.Repeat("a", 64)+"}}}}")
	command := "vmop-cli disk upload --cluster -n " + t.namespace + " mine FILE"
	says(d.becomes("mine", spec.DiskWaitForUserUpload, conditions.ReasonDiskUploadNeeded), command)
	ask("taken", "r1")
	says(d.becomes("taken", spec.DiskPending, conditions.ReasonDiskSecretInTheWay), "delete it")
	if n := pods(); n > 0 {
		t.Errorf("%d pods, and nobody can upload", n)
	}

	ask("mine", "r1")
	mine := d.becomes("mine", spec.DiskWaitForUserUpload, conditions.ReasonPodNotStarted)
	key, err := t.kube.CoreV1().Secrets(t.namespace).Get(t.Context(), "mine-vd-transfer", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tunnel.ParseIdentity(key.Data["tls.crt"], key.Data["tls.key"]); err != nil || len(key.OwnerReferences) != 1 || key.OwnerReferences[0].UID != mine.UID {
		t.Errorf("%v: %+v", err, key.ObjectMeta)
	}
	d.tells("mine-vd-import", "127.77.2.1", `{}`)
	says(d.becomes("mine", spec.DiskWaitForUserUpload, conditions.ReasonDiskUploadAwaited), command)
	pod := d.ends("mine-vd-import", `{"error":"upload: nobody has come within 10m0s"}`, corev1.PodFailed)
	says(d.becomes("mine", spec.DiskWaitForUserUpload, conditions.ReasonDiskUploadNeeded), "nobody has come within 10m0s. Upload it: "+command)
	d.gone("the pod", func() error {
		_, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		return err
	})
	if text := fmt.Sprintf("%+v", pod.Spec); strings.Contains(text, string(key.Data["tls.key"])) || pod.Spec.Volumes[len(pod.Spec.Volumes)-1].Secret.SecretName != key.Name {
		t.Errorf("the key is to be a file: %s", text)
	}

	// The request was answered.
	ask("taken", "r2")
	d.becomes("taken", spec.DiskPending, conditions.ReasonDiskSecretInTheWay)
	if got := d.becomes("mine", spec.DiskWaitForUserUpload, conditions.ReasonDiskUploadNeeded); pods() > 0 || got.Status.Import.Request != "r1" || got.Status.Import.PodUID != pod.UID {
		t.Errorf("%d pods: %+v", pods(), got.Status.Import)
	}
	ask("mine", "r2")
	d.becomes("mine", spec.DiskWaitForUserUpload, conditions.ReasonPodNotStarted)
	d.tells("mine-vd-import", "127.77.2.2", `{"step":"uploading","done":5,"total":10}`)
	t.eventually("the progress is told", func() error {
		if got := d.becomes("mine", spec.DiskProvisioning, conditions.ReasonDiskProvisioning); got.Status.Progress != "35%" || got.Status.Import.Step != "uploading" {
			return fmt.Errorf("%+v", got.Status)
		}
		return nil
	})
	d.ends("mine-vd-import", `{"format":"qcow2","size":1048576}`, corev1.PodSucceeded)
	d.volume("mine-vd", "1Gi")
	if got := d.becomes("mine", spec.DiskReady, conditions.ReasonDiskReady); got.Status.Format != "qcow2" || got.Status.Import != nil {
		t.Errorf("%+v", got.Status)
	}
	// A disk that is there is never uploaded again.
	ask("mine", "r3")
	if err := d.all.Delete(t.Context(), "taken", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	d.gone("taken", func() error { _, err := d.all.Get(t.Context(), "taken", metav1.GetOptions{}); return err })
	d.becomes("mine", spec.DiskReady, conditions.ReasonDiskReady)
	if _, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "mine-vd-import", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a pod takes uploads to a disk that is there: %v", err)
	}
}
