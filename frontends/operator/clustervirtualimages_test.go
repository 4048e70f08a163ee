package main

import (
	"fmt"
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

// clusterImages are those of a cluster, whose claims are in the test's namespace.
type clusterImages struct {
	*test
	all dynamic.ResourceInterface
}

func (c *clusterImages) make(name, content string) {
	c.Helper()
	text := fmt.Sprintf("apiVersion: vmoperator.jdrupes.org/v1\nkind: ClusterVirtualImage\nmetadata: {name: %s}\nspec: %s\n", name, content)
	u := c.object(text)
	u.SetNamespace("")
	if _, err := c.all.Create(c.Context(), u, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
}

// becomes waits until an image has a phase and a reason.
func (c *clusterImages) becomes(name string, phase spec.ImagePhase, reason string) *spec.ClusterVirtualImage {
	c.Helper()
	out := &spec.ClusterVirtualImage{}
	c.eventually(name+" is "+string(phase), func() error {
		u, err := c.all.Get(c.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		*out = spec.ClusterVirtualImage{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
			return err
		}
		r := spec.FindCondition(out.Status.Conditions, conditions.Ready)
		if out.Status.Phase != phase || r == nil || r.Reason != reason || r.Message == "" {
			return fmt.Errorf("want %s, %s: %+v", phase, reason, out.Status)
		}
		return nil
	})
	return out
}

// An image of the cluster is filled in one namespace, whose claim it owns, and goes with
// that.
func TestClusterVirtualImages(tt *testing.T) {
	tt.Parallel()
	own := ownCluster(tt)
	t := newTestOn(tt, own) // whose namespace keeps the images
	all, err := dynamic.NewForConfig(own.Config())
	if err != nil {
		t.Fatal(err)
	}
	d := &virtualDisks{test: t}
	images := &clusterImages{t, all.Resource(spec.GroupVersion().WithResource(spec.ResourceClusterImages))}
	config := t.file("/Operator: {runnerImage: \"registry.test/runner:1\", imageNamespace: " + t.namespace + "}\n")
	operator := t.start(own.Kubeconfig(), "--config="+config, "--"+flagWithout+"=nowhere")

	images.make("golden", "{persistentVolumeClaim: {size: 1Gi, storageClassName: fast}, dataSource: {type: HTTP, http: {url: 'http://images.test/a.qcow2'}}}")
	images.make("inside", "{persistentVolumeClaim: {size: 1Gi}, dataSource: {type: HTTP, http: {url: 'http://169.254.169.254/latest'}}}")
	images.becomes("inside", spec.ImagePending, conditions.ReasonDiskSourceNotAllowed)
	images.becomes("golden", spec.ImageProvisioning, conditions.ReasonPodNotStarted)
	d.volume("golden-cvi", "1Gi")
	d.ends("golden-cvi-import", fmt.Sprintf(`{"format":"qcow2","size":3221225472,"stored":346030080,"sha256":%q,"length":346030080}`, strings.Repeat("a", 64)), corev1.PodSucceeded)
	golden := images.becomes("golden", spec.ImageReady, conditions.ReasonImageReady)
	if s := golden.Status; s.Format != "qcow2" || s.Size == nil || s.Size.String() != "3Gi" || s.Target == nil || s.Target.PersistentVolumeClaim != "golden-cvi" || s.Target.Namespace != t.namespace {
		t.Errorf("%+v", s)
	}
	claim, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).Get(t.Context(), "golden-cvi", metav1.GetOptions{})
	if err != nil || claim.OwnerReferences[0].UID != golden.UID || claim.OwnerReferences[0].Kind != spec.KindClusterImage || claim.Labels[names.LabelClusterImage] != "golden" || claim.Annotations[names.AnnotationFilled] != string(golden.UID) {
		t.Errorf("%v: %+v", err, claim)
	}
	if _, err := images.all.Patch(t.Context(), "golden", types.MergePatchType, []byte(`{"spec":{"persistentVolumeClaim":{"size":"2Gi"}}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot be changed") {
		t.Errorf("%v", err)
	}

	// No machine has the claim, which it could write to.
	t.create(strings.Replace(machine("web", "Running"), "disks:", "disks:\n    - persistentVolumeClaim: {claimName: golden-cvi}", 1))
	t.eventually("the machine is told", func() error {
		u, err := t.vms.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if text := fmt.Sprint(u.Object["status"]); !strings.Contains(text, spec.ReasonClaimOfImage) || !strings.Contains(text, "ClusterVirtualImage golden") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	if err := t.vms.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	// A disk of another namespace gets it from a pod beside it, which goes when it is
	// there.
	there := newTestOn(tt, own)
	disks := &virtualDisks{there, all.Resource(spec.GroupVersion().WithResource(spec.ResourceDisks)).Namespace(there.namespace)}
	disks.make("copy", "{persistentVolumeClaim: {size: 5Gi}, dataSource: {type: ObjectRef, objectRef: {kind: ClusterVirtualImage, name: golden}}}")
	disks.make("small", "{persistentVolumeClaim: {size: 1Gi}, dataSource: {type: ObjectRef, objectRef: {kind: ClusterVirtualImage, name: golden}}}")
	disks.make("lost", "{persistentVolumeClaim: {size: 1Gi}, dataSource: {type: ObjectRef, objectRef: {kind: ClusterVirtualImage, name: nowhere}}}")
	disks.becomes("lost", spec.DiskPending, conditions.ReasonDiskSourceNotReady)
	disks.becomes("small", spec.DiskFailed, conditions.ReasonDiskImportFailed)
	copied := disks.becomes("copy", spec.DiskPending, conditions.ReasonDiskProvisioning)
	server := objects.ServerPod("golden", copied.UID)
	pods := t.kube.CoreV1().Pods(t.namespace)
	t.eventually("the image is served", func() error {
		p, err := pods.Get(t.Context(), server, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if to := objects.ServedBy(p); to.UID != copied.UID || to.Namespace != there.namespace || to.Key == "" {
			return fmt.Errorf("it is served to %s", to)
		}
		p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "10.1.2.3", []corev1.PodIP{{IP: "10.1.2.3"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		_, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
		return err
	})
	disks.becomes("copy", spec.DiskProvisioning, conditions.ReasonPodNotStarted)
	if err := images.all.Delete(t.Context(), "golden", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	images.becomes("golden", spec.ImageTerminating, conditions.ReasonDiskAttached)
	disks.volume("copy-vd", "5Gi")
	job := disks.ends("copy-vd-import", `{"format":"qcow2","size":5368709120}`, corev1.PodSucceeded).Spec
	if env := job.Containers[0].Env[0].Value; !strings.Contains(env, "10.1.2.3:10812") || !strings.Contains(env, strings.Repeat("a", 64)) || len(job.Volumes) != 3 {
		t.Errorf("%+v", job)
	}
	disks.becomes("copy", spec.DiskReady, conditions.ReasonDiskReady)
	t.eventually("the image is served no more", func() error {
		if p, err := pods.Get(t.Context(), server, metav1.GetOptions{}); !apierrors.IsNotFound(err) && (err != nil || p.DeletionTimestamp == nil) {
			return fmt.Errorf("there is pod %s: %v", server, err)
		}
		return nil
	})
	t.eventually("the image goes", func() error {
		if _, err := images.all.Get(t.Context(), "golden", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	if code := operator.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, operator.log)
	}
}
