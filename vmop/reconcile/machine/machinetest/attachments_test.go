package machinetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The runner is told of the attachments of its own pod, in the order of their age, and of
// no others; whatever their status says, it has a configuration.
func TestAttachmentsAreTold(t *testing.T) {
	w := running(t, nil)
	fingerprint := strings.Repeat("0a", 32)
	make := func(name, vm string, age time.Duration, c *spec.AttachmentConnection) spec.VirtualMachineBlockDeviceAttachment {
		a := spec.NewAttachment("default", name, vm, spec.AttachedBlockDevice{Kind: spec.AttachedClaim, Name: name})
		a.UID, a.CreationTimestamp, a.Status.Connection = types.UID("uid-"+name), metav1.NewTime(w.now.Add(-age)), c
		return *a
	}
	plan := w.decided(func(s *machine.Snapshot) {
		pod := s.Pod().UID
		s.Attachments = []spec.VirtualMachineBlockDeviceAttachment{
			make("young", s.VM.Name, time.Minute, &spec.AttachmentConnection{PodUID: pod}),
			make("old", s.VM.Name, time.Hour, &spec.AttachmentConnection{PodUID: pod, Address: "[fd00::1]:10809", Fingerprint: fingerprint, Detach: true}),
			make("before", s.VM.Name, time.Hour, &spec.AttachmentConnection{PodUID: "former", Address: "192.0.2.1:10809", Fingerprint: fingerprint}),
			make("waiting", s.VM.Name, time.Hour, nil),
			make("other", "other", time.Hour, &spec.AttachmentConnection{PodUID: pod}),
			make("forged", s.VM.Name, time.Second, &spec.AttachmentConnection{PodUID: pod, Address: "nowhere", Fingerprint: "x"}),
		}
	})
	var got []runnerconfig.Attachment
	for _, a := range plan.Actions {
		apply, is := a.(reconcile.Apply)
		if !is {
			continue
		}
		if cm, is := apply.Object.(*corev1.ConfigMap); is {
			c, _, err := runnerconfig.Parse([]byte(cm.Data[names.ConfigKey]))
			if err != nil {
				t.Fatal(err)
			}
			runnerconfig.Default(&c)
			if err := runnerconfig.Validate(&c); err != nil {
				t.Error(err)
			}
			got = c.Runner.VM.Attachments
		}
	}
	want := []runnerconfig.Attachment{
		{UID: "uid-old", Name: "old", Address: "[fd00::1]:10809", Fingerprint: fingerprint, Detach: true}, {UID: "uid-young", Name: "young"}, {UID: "uid-forged", Name: "forged"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A machine that was stopped has the volume of what was attached to it in its next pod, and
// its runner has the path from the beginning; it waits for the exporter that is ending, and
// detaches when it is told so. The digest of the pod does not know of it.
func TestAttachmentsOfTheNextPod(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	for name, c := range map[string]struct {
		mode *corev1.PersistentVolumeMode
		path string
	}{"a file": {nil, "/var/local/vmop-disks/"}, "a device": {&block, "/dev/"}} {
		t.Run(name, func(t *testing.T) { nextPodHas(t, c.mode, c.path) })
	}
}

func nextPodHas(t *testing.T, mode *corev1.PersistentVolumeMode, under string) {
	t.Helper()
	a := spec.NewAttachment("default", "data", "web", spec.AttachedBlockDevice{Kind: spec.AttachedClaim, Name: "data"})
	a.UID, a.Finalizers, a.Status.Place = "uid-data", []string{names.FinalizerAttachment}, 3
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Labels = map[string]string{names.LabelDisk: "data"}
	claim.Annotations = map[string]string{names.AnnotationMadeFor: "disk", names.AnnotationFilled: "disk"}
	claim.Spec.VolumeMode, claim.Status.Phase = mode, corev1.ClaimBound
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}
	exporter := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "data-vmbda", UID: "exporter", Annotations: map[string]string{names.AnnotationMadeFor: "uid-data"}}}
	exporter.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	exporting := true
	w := newWorld(func(string, int) int { return 0 }, func(s machine.Snapshot) reconcile.Plan {
		s.Attachments, s.Claims = []spec.VirtualMachineBlockDeviceAttachment{*a}, append(slices.Clone(s.Claims), claim)
		if exporting {
			s.Pods = append(slices.Clone(s.Pods), exporter)
		}
		return machine.Decide(s)
	})
	w.put("claim/data", claim.DeepCopy())
	work := func() {
		for range 10 {
			w.work()
			w.pass(time.Second)
		}
		w.observeAll()
	}
	work()
	if pod := get[*corev1.Pod](w, "pod/web"); pod != nil {
		t.Fatalf("there is a pod while %s exports the disk", exporter.Name)
	}
	c := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionPodReady)
	if c == nil || c.Reason != spec.ReasonDisksInUse || !strings.Contains(c.Message, exporter.Name) {
		t.Errorf("it is told %+v", c)
	}
	exporting = false
	work()
	pod := get[*corev1.Pod](w, "pod/web")
	if pod == nil {
		t.Fatal("there is no pod")
	}
	path := ""
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		if strings.HasPrefix(m.Name, "attached-") {
			path = m.MountPath + "/disk.img"
		}
	}
	for _, d := range pod.Spec.Containers[0].VolumeDevices {
		if strings.HasPrefix(d.Name, "attached-") {
			path = d.DevicePath
		}
	}
	if !slices.Contains(objects.PodClaims(pod), "data") || !strings.HasPrefix(path, under) {
		t.Fatalf("the pod has the disk at %q", path)
	}
	wants := func(want ...runnerconfig.Attachment) {
		t.Helper()
		got, _, err := runnerconfig.Parse([]byte(get[*corev1.ConfigMap](w, "configmap/web").Data[names.ConfigKey]))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.Runner.VM.Attachments) != fmt.Sprint(want) {
			t.Errorf("the runner has %+v, want %+v", got.Runner.VM.Attachments, want)
		}
	}
	entry := runnerconfig.Attachment{UID: "uid-data", Name: "data", Place: 3, Path: path, GrowTo: 2 << 30}
	wants(entry)
	a.Status.Connection = &spec.AttachmentConnection{PodUID: pod.UID, Direct: true}
	work()
	wants(entry)
	a.Status.Connection.Detach = true
	work()
	wants(runnerconfig.Attachment{UID: "uid-data", Name: "data", Place: 3, Detach: true})
	if now := get[*corev1.Pod](w, "pod/web"); now == nil || now.UID != pod.UID {
		t.Error("the pod was replaced")
	}
}
