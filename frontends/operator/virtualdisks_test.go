package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// virtualDisks are those of a test's namespace.
type virtualDisks struct {
	*test
	all dynamic.ResourceInterface
}

func (t *test) virtualDisks() *virtualDisks {
	t.Helper()
	all, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &virtualDisks{t, all.Resource(spec.GroupVersion().WithResource(spec.ResourceDisks)).Namespace(t.namespace)}
}

func diskManifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualDisk\nmetadata: {name: %s}\nspec: %s\n", name, spec)
}

func (d *virtualDisks) make(name, spec string) {
	d.Helper()
	if _, err := d.all.Create(d.Context(), d.object(diskManifest(name, spec)), metav1.CreateOptions{}); err != nil {
		d.Fatal(err)
	}
}

// becomes waits until a disk has a phase and a reason.
func (d *virtualDisks) becomes(name string, phase spec.DiskPhase, reason string) *spec.VirtualDisk {
	d.Helper()
	out := &spec.VirtualDisk{}
	d.eventually(name+" is "+string(phase), func() error {
		u, err := d.all.Get(d.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		*out = spec.VirtualDisk{}
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

// volume does with a claim what a provisioner does.
func (d *virtualDisks) volume(claim, capacity string) {
	d.Helper()
	d.eventually("claim "+claim+" gets a volume", func() error {
		c, err := d.kube.CoreV1().PersistentVolumeClaims(d.namespace).Get(d.Context(), claim, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c.Status.Phase = corev1.ClaimBound
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
		_, err = d.kube.CoreV1().PersistentVolumeClaims(d.namespace).UpdateStatus(d.Context(), c, metav1.UpdateOptions{})
		return err
	})
}

// tells lets the pod that fills a disk run at an address of this host, where it says how
// far it is.
func (d *virtualDisks) tells(pod, address, progress string) {
	d.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, runnerconfig.ImportProgressPort))
	if err != nil {
		d.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(progress)) })}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	d.Cleanup(func() {
		if err := errors.Join(s.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
			d.Error(err)
		}
	})
	d.eventually("pod "+pod+" runs", func() error {
		p, err := d.kube.CoreV1().Pods(d.namespace).Get(d.Context(), pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "import", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		_, err = d.kube.CoreV1().Pods(d.namespace).UpdateStatus(d.Context(), p, metav1.UpdateOptions{})
		return err
	})
}

// ends does with the pod that fills a disk what a kubelet does, when its container has
// said something.
func (d *virtualDisks) ends(pod, said string, phase corev1.PodPhase) *corev1.Pod {
	d.Helper()
	var p *corev1.Pod
	d.eventually("pod "+pod+" ends", func() (err error) {
		if p, err = d.kube.CoreV1().Pods(d.namespace).Get(d.Context(), pod, metav1.GetOptions{}); err != nil {
			return err
		}
		p.Status.Phase = phase
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "import", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: said}}}}
		_, err = d.kube.CoreV1().Pods(d.namespace).UpdateStatus(d.Context(), p, metav1.UpdateOptions{})
		return err
	})
	return p
}

func (d *virtualDisks) gone(what string, get func() error) {
	d.Helper()
	d.eventually(what+" goes", func() error {
		if err := get(); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
}

// Disks by themselves: an empty one, which grows; one of an image, which a pod puts into
// its claim; one whose image is refused for good; one whose claim's name is taken. One
// that a machine has is kept.
func TestVirtualDisks(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	d := t.virtualDisks()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("/Operator: {runnerImage: \"registry.test/runner:1\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	taken := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "taken-vd"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	if _, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).Create(t.Context(), taken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	first := t.start(cluster.Kubeconfig(), "--config="+config)
	claim := func(name string) *corev1.PersistentVolumeClaim {
		t.Helper()
		c, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}

	d.make("empty", "{persistentVolumeClaim: {size: 1Gi}}")
	d.make("image", "{persistentVolumeClaim: {size: 2Gi, storageClassName: fast}, dataSource: {type: HTTP, http: {url: 'http://images.test/a.qcow2?$(HOME)', checksum: {sha256: "+strings.Repeat("a", 64)+"}}}}")
	d.make("bad", "{persistentVolumeClaim: {size: 1Gi}, dataSource: {type: ContainerImage, containerImage: {image: 'images.test/disks/a:1'}}}")
	d.make("taken", "{persistentVolumeClaim: {size: 1Gi}}")
	d.make("inside", "{persistentVolumeClaim: {size: 1Gi}, dataSource: {type: HTTP, http: {url: 'http://169.254.169.254/latest'}}}")
	d.becomes("taken", spec.DiskFailed, conditions.ReasonDiskClaimInTheWay)
	d.becomes("inside", spec.DiskPending, conditions.ReasonDiskSourceNotAllowed)

	// The empty one.
	d.becomes("empty", spec.DiskWaitForFirstConsumer, conditions.ReasonDiskWaitForFirstConsumer)
	d.volume("empty-vd", "1Gi")
	empty := d.becomes("empty", spec.DiskReady, conditions.ReasonDiskReady)
	if c := claim("empty-vd"); *c.Spec.VolumeMode != corev1.PersistentVolumeBlock || len(c.OwnerReferences) != 1 || c.OwnerReferences[0].UID != empty.UID ||
		empty.Status.Target == nil || empty.Status.Target.PersistentVolumeClaim != c.Name || empty.Status.Target.PersistentVolumeClaimUID != c.UID {
		t.Errorf("%+v\n%+v", c, empty.Status)
	}
	patch := func(name, body string) error {
		_, err := d.all.Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	// Kubernetes lets claims grow whose storage class says so.
	if err := patch("empty", `{"spec":{"persistentVolumeClaim":{"size":"3Gi"}}}`); err != nil {
		t.Fatal(err)
	}
	t.eventually("the growth is tried", func() error {
		got := d.becomes("empty", spec.DiskReady, conditions.ReasonDiskReady)
		c := spec.FindCondition(got.Status.Conditions, conditions.DiskResized)
		if c == nil || c.Reason != conditions.ReasonWriteRefused || !strings.Contains(c.Message, "3Gi") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	for body, want := range map[string]string{
		`{"spec":{"persistentVolumeClaim":{"size":"1Gi"}}}`:                        "does not shrink",
		`{"spec":{"persistentVolumeClaim":{"storageClassName":"other"}}}`:          "cannot be changed",
		`{"spec":{"dataSource":{"type":"HTTP","http":{"url":"http://a.test/b"}}}}`: "make another disk",
		`{"spec":{"persistentVolumeClaim":{"size":"many"}}}`:                       "quantity",
	} {
		if err := patch("empty", body); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}

	// That of an image.
	d.becomes("image", spec.DiskProvisioning, conditions.ReasonPodNotStarted)
	d.tells("image-vd-import", "127.77.1.1", `{"step":"downloading","done":5,"total":10}`)
	t.eventually("the progress is told", func() error {
		got := d.becomes("image", spec.DiskProvisioning, conditions.ReasonDiskProvisioning)
		if im := got.Status.Import; got.Status.Progress != "35%" || im == nil || im.Step != "downloading" || im.DoneBytes != 5 || im.TotalBytes != 10 || im.Attempts != 0 {
			return fmt.Errorf("%+v", got.Status)
		}
		return nil
	})
	pod := d.ends("image-vd-import", `{"format":"qcow2","size":1048576}`, corev1.PodSucceeded)
	d.gone("the pod", func() error {
		_, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		return err
	})
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken || pod.Spec.Containers[0].Image != "registry.test/runner:1" {
		t.Errorf("%+v", pod.Spec)
	}
	var job map[string]any
	if err := json.Unmarshal([]byte(pod.Spec.Containers[0].Env[0].Value), &job); err != nil || job["image"].(map[string]any)["source"] != "http://images.test/a.qcow2?$(HOME)" {
		t.Errorf("%v: %v", err, job)
	}
	d.volume("image-vd", "2Gi")
	image := d.becomes("image", spec.DiskReady, conditions.ReasonDiskReady)
	if c := claim("image-vd"); c.Annotations[names.AnnotationFilled] != string(image.UID) || *c.Spec.VolumeMode != corev1.PersistentVolumeFilesystem || *c.Spec.StorageClassName != "fast" || image.Status.Format != "qcow2" || image.Status.Progress != "100%" || image.Status.Import != nil {
		t.Errorf("%+v\n%+v", c, image.Status)
	}

	// A copy of that, once a pod has let it go that no watch shows.
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "backup"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "backup", Image: "registry.test/backup"}},
		Volumes:    []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "image-vd"}}}},
	}}
	if _, err := t.kube.CoreV1().Pods(t.namespace).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.make("copy", "{persistentVolumeClaim: {size: 2Gi}, dataSource: {type: ObjectRef, objectRef: {kind: VirtualDisk, name: image}}}")
	d.becomes("copy", spec.DiskPending, conditions.ReasonDisksInUse)
	if err := t.kube.CoreV1().Pods(t.namespace).Delete(t.Context(), other.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	d.becomes("copy", spec.DiskProvisioning, conditions.ReasonPodNotStarted)
	if got := d.becomes("image", spec.DiskReady, conditions.ReasonDiskReady); len(got.Status.AttachedToVirtualMachines) > 0 {
		t.Errorf("%+v", got.Status)
	}
	pod = d.ends("copy-vd-import", `{"format":"qcow2","size":1048576}`, corev1.PodSucceeded)
	if got := objects.PodClaims(pod); !slices.Equal(got, []string{"copy-vd", "image-vd"}) || !strings.Contains(pod.Spec.Containers[0].Env[0].Value, `"format":"qcow2"`) {
		t.Errorf("the pod has %v: %+v", got, pod.Spec.Containers[0])
	}
	d.volume("copy-vd", "2Gi")
	if got := d.becomes("copy", spec.DiskReady, conditions.ReasonDiskReady); got.Status.Format != "qcow2" {
		t.Errorf("%+v", got.Status)
	}

	d.ends("bad-vd-import", `{"error":"images.test is not what was asked for","final":true}`, corev1.PodFailed)
	bad := d.becomes("bad", spec.DiskFailed, conditions.ReasonDiskImportFailed)
	if bad.Status.Import == nil || bad.Status.Import.Attempts != 1 || bad.Status.Import.Message != "images.test is not what was asked for" {
		t.Errorf("%+v", bad.Status)
	}

	// A disk of a machine is kept, and goes with it.
	vm := machine("web", "Stopped")
	vm = strings.Replace(vm, "disks:", "disks:\n    - persistentVolumeClaim: {claimName: image-vd}", 1)
	if !strings.Contains(vm, "image-vd") {
		t.Fatal(vm)
	}
	t.create(vm)
	t.eventually("the disk has a machine", func() error {
		got := d.becomes("image", spec.DiskReady, conditions.ReasonDiskReady)
		if !slices.Equal(got.Status.AttachedToVirtualMachines, []spec.AttachedVirtualMachine{{Name: "web"}}) {
			return fmt.Errorf("%+v", got.Status)
		}
		return nil
	})
	for _, name := range []string{"image", "empty", "bad", "taken", "inside", "copy"} {
		if err := d.all.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"empty", "bad", "taken", "inside", "copy"} {
		d.gone("disk "+name, func() error { _, err := d.all.Get(t.Context(), name, metav1.GetOptions{}); return err })
	}
	d.becomes("image", spec.DiskTerminating, conditions.ReasonDiskAttached)
	if err := t.vms.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	d.gone("disk image", func() error { _, err := d.all.Get(t.Context(), "image", metav1.GetOptions{}); return err })
	if code := first.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, first.log)
	}
}

// A disk that a running machine has grows for its guest: first the claim, then, when the
// volume has it, the runner is told, and the disk is as large as asked for when the runner
// says that its guest has that. A machine that does not run is not waited for.
func TestADiskGrowsUnderItsMachine(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	d := t.virtualDisks()
	k := t.startKubelet()
	class, yes := "grows-"+t.namespace, true
	classes := t.kube.StorageV1().StorageClasses()
	if _, err := classes.Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "test.local/none", AllowVolumeExpansion: &yes}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := classes.Delete(context.Background(), class, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("/Operator: {runnerImage: \"registry.test/runner:1\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	first := t.start(cluster.Kubeconfig(), "--config="+config)
	d.make("image", "{persistentVolumeClaim: {size: 2Gi, storageClassName: "+class+"}, dataSource: {type: HTTP, http: {url: 'http://images.test/a.qcow2'}}}")
	d.make("empty", "{persistentVolumeClaim: {size: 2Gi, storageClassName: "+class+"}}")
	d.ends("image-vd-import", `{"format":"qcow2","size":1048576}`, corev1.PodSucceeded)
	for _, name := range []string{"image", "empty"} {
		d.volume(name+"-vd", "2Gi")
		d.becomes(name, spec.DiskReady, conditions.ReasonDiskReady)
	}
	t.create(strings.Replace(machine("web", "Running"), "spec:", "spec:\n  blockDeviceRefs: [{kind: VirtualDisk, name: image}, {kind: VirtualDisk, name: empty}]", 1))
	t.phase("web", spec.PhaseRunning)
	grows := func(size runnerconfig.Bytes) {
		t.Helper()
		t.eventually("the runner is told of "+size.String(), func() error {
			cm, err := t.kube.CoreV1().ConfigMaps(t.namespace).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			c, _, err := runnerconfig.Parse([]byte(cm.Data[names.ConfigKey]))
			if err != nil {
				return err
			}
			n := 0
			for _, drive := range c.Runner.VM.Drives {
				if drive.GrowTo == size {
					n++
				}
			}
			if n != 2 {
				return fmt.Errorf("%+v", c.Runner.VM.Drives)
			}
			return nil
		})
	}
	says := func(image, empty string) {
		t.Helper()
		k.say("web", map[string]any{"disks": []any{map[string]any{"name": "image-vd-claim", "size": image}, map[string]any{"name": "empty-vd-claim", "size": empty}}})
	}
	resized := func(name string, phase spec.DiskPhase, says string) {
		t.Helper()
		t.eventually(name+": "+says, func() error {
			got := d.becomes(name, phase, conditions.ReasonDiskReady)
			if c := spec.FindCondition(got.Status.Conditions, conditions.DiskResized); c == nil || (c.Status == metav1.ConditionTrue) != (phase == spec.DiskReady) || !strings.Contains(c.Message, says) {
				return fmt.Errorf("%+v", c)
			}
			return nil
		})
	}
	grows(2 << 30)
	says("2Gi", "2Gi")
	for _, name := range []string{"image", "empty"} {
		if _, err := d.all.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"persistentVolumeClaim":{"size":"3Gi"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		resized(name, spec.DiskResizing, "the volume grows from 2Gi to 3Gi")
		d.volume(name+"-vd", "3Gi")
		resized(name, spec.DiskResizing, "the guest of machine web has 2Gi of it so far")
	}
	grows(3 << 30)
	says("3Gi", "2Gi")
	resized("image", spec.DiskReady, "the volume has what the disk asks for")
	resized("empty", spec.DiskResizing, "the guest of machine web has 2Gi of it so far")
	t.eventually("the machine says so", func() error {
		vm, err := t.status("web")
		if err != nil {
			return err
		}
		refs := vm.Status.BlockDeviceRefs
		if len(refs) != 2 || refs[0].Size == nil || refs[1].Size == nil || refs[0].Size.String() != "3Gi" || refs[1].Size.String() != "2Gi" || len(vm.Status.RestartAwaitingChanges) > 0 {
			return fmt.Errorf("%+v", vm.Status)
		}
		return nil
	})
	t.setState("web", spec.StateStopped)
	t.phase("web", spec.PhaseStopped)
	resized("empty", spec.DiskReady, "the volume has what the disk asks for")
	if code := first.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, first.log)
	}
}

// A disk that is made of another one of the same storage class gets a clone of its claim
// where the provisioner clones. What the pod found decides whether it was one; and a
// claim that was refused, and is gone, is followed by one that asks for no clone.
func TestClonesOfVirtualDisks(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	d := t.virtualDisks()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("/Operator: {runnerImage: \"registry.test/runner:1\", cloningProvisioners: [storage.test]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.start(cluster.Kubeconfig(), "--config="+config)
	claims := t.kube.CoreV1().PersistentVolumeClaims(t.namespace)
	annotate := func(claim, annotation, value string) {
		t.Helper()
		body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotation, value)
		if _, err := claims.Patch(t.Context(), claim, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	d.make("image", "{persistentVolumeClaim: {size: 2Gi, storageClassName: fast}, dataSource: {type: HTTP, http: {url: 'http://images.test/a.qcow2'}}}")
	d.ends("image-vd-import", `{"format":"qcow2","size":1048576}`, corev1.PodSucceeded)
	d.volume("image-vd", "2Gi")
	image := d.becomes("image", spec.DiskReady, conditions.ReasonDiskReady)
	annotate("image-vd", "volume.kubernetes.io/storage-provisioner", "storage.test")
	cloneOf := func(name string) *corev1.PersistentVolumeClaim {
		t.Helper()
		var c *corev1.PersistentVolumeClaim
		t.eventually("the claim of "+name+" is made", func() (err error) {
			c, err = claims.Get(t.Context(), name+"-vd", metav1.GetOptions{})
			return err
		})
		if s := c.Spec.DataSource; s == nil || s.Kind != names.KindClaim || s.Name != "image-vd" || c.Annotations[names.AnnotationCloneOf] != string(image.UID) {
			t.Fatalf("%s: %+v", name, c)
		}
		return c
	}
	// One provisioner makes a clone, and one an empty volume: the pod copies then.
	for name, cloned := range map[string]bool{"cloned": true, "forgotten": false} {
		d.make(name, "{persistentVolumeClaim: {size: 3Gi, storageClassName: fast}, dataSource: {type: ObjectRef, objectRef: {kind: VirtualDisk, name: image}}}")
		cloneOf(name)
		p := d.ends(name+"-vd-import", fmt.Sprintf(`{"format":"qcow2","size":1048576,"cloned":%v}`, cloned), corev1.PodSucceeded)
		if got := p.Spec.Containers[0].Env[0].Value; !strings.Contains(got, fmt.Sprintf(`"cloneOf":%q,"whole":true`, image.UID)) {
			t.Errorf("%s: %s", name, got)
		}
		d.volume(name+"-vd", "3Gi")
		d.becomes(name, spec.DiskReady, conditions.ReasonDiskReady)
		if c := cloneOf(name); c.Annotations[names.AnnotationCloned] != strconv.FormatBool(cloned) || c.Annotations[names.AnnotationFilled] == "" {
			t.Errorf("%s: %+v", name, c.Annotations)
		}
	}
	// One fails for ever, which is noted after a while.
	d.make("refused", "{persistentVolumeClaim: {size: 3Gi, storageClassName: fast}, dataSource: {type: ObjectRef, objectRef: {kind: VirtualDisk, name: image}}}")
	refused := cloneOf("refused")
	d.becomes("refused", spec.DiskProvisioning, conditions.ReasonPodNotStarted)
	if _, err := d.all.Patch(t.Context(), "refused", types.MergePatchType, fmt.Appendf(nil, `{"status":{"import":{"cloneRefused":%q}}}`, refused.UID), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	// The claim first: without a pod another one would be made for it.
	if err := claims.Delete(t.Context(), refused.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	d.becomes("refused", spec.DiskProvisioning, conditions.ReasonDiskProvisioning)
	if err := t.kube.CoreV1().Pods(t.namespace).Delete(t.Context(), "refused-vd-import", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := claims.Patch(t.Context(), refused.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	t.eventually("a claim that is no clone takes its place", func() error {
		c, err := claims.Get(t.Context(), refused.Name, metav1.GetOptions{})
		if err == nil && (c.UID == refused.UID || c.Spec.DataSource != nil) {
			err = fmt.Errorf("%+v", c)
		}
		return err
	})
	p := d.ends("refused-vd-import", `{"format":"qcow2","size":1048576}`, corev1.PodSucceeded)
	d.volume("refused-vd", "3Gi")
	d.becomes("refused", spec.DiskReady, conditions.ReasonDiskReady)
	if got := p.Spec.Containers[0].Env[0].Value; strings.Contains(got, "cloneOf") {
		t.Errorf("the copy: %s", got)
	}
}
