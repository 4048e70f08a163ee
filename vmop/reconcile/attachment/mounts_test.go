package attachment_test

import (
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/attachment"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A machine waits for the exporter of what its next pod has itself, and not for one that
// should have ended; it has nothing that is anybody else's, or its own by its manifest.
func TestMounts(t *testing.T) {
	vm := spec.NewVirtualMachine("lab", "web")
	a := spec.NewAttachment("lab", "data", "web", spec.AttachedBlockDevice{Kind: spec.AttachedClaim, Name: "data"})
	a.UID, a.Finalizers, a.Status.Place = "a", []string{names.FinalizerAttachment}, 3
	exporter := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "data-vmbda", Annotations: map[string]string{names.AnnotationMadeFor: "a"}}}
	exporter.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	ending := *exporter.DeepCopy()
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	ending.DeletionTimestamp = &metav1.Time{Time: noon}
	for name, c := range map[string]struct {
		change  func(*attachment.Start, *spec.VirtualMachineBlockDeviceAttachment)
		mounts  bool
		awaited string
		until   time.Time
	}{
		"free": {func(*attachment.Start, *spec.VirtualMachineBlockDeviceAttachment) {}, true, "", time.Time{}},
		"exported": {func(s *attachment.Start, _ *spec.VirtualMachineBlockDeviceAttachment) {
			s.Pods = []corev1.Pod{exporter}
		}, true, "data-vmbda", time.Time{}},
		"ending": {func(s *attachment.Start, _ *spec.VirtualMachineBlockDeviceAttachment) { s.Pods = []corev1.Pod{ending} }, true, "data-vmbda", noon.Add(30 * time.Second)},
		"overdue": {func(s *attachment.Start, _ *spec.VirtualMachineBlockDeviceAttachment) {
			s.Pods, s.Now = []corev1.Pod{ending}, noon.Add(30*time.Second)
		}, false, "", time.Time{}},
		"somebody else's": {func(s *attachment.Start, _ *spec.VirtualMachineBlockDeviceAttachment) {
			other := *exporter.DeepCopy()
			other.Annotations = nil
			s.Pods = []corev1.Pod{other}
		}, false, "", time.Time{}},
		"of another machine": {func(_ *attachment.Start, a *spec.VirtualMachineBlockDeviceAttachment) {
			a.Spec.VirtualMachineName = "db"
		}, false, "", time.Time{}},
		"never attached": {func(_ *attachment.Start, a *spec.VirtualMachineBlockDeviceAttachment) { a.Status.Place = 0 }, false, "", time.Time{}},
		"not held":       {func(_ *attachment.Start, a *spec.VirtualMachineBlockDeviceAttachment) { a.Finalizers = nil }, false, "", time.Time{}},
		"going": {func(_ *attachment.Start, a *spec.VirtualMachineBlockDeviceAttachment) {
			a.DeletionTimestamp = &metav1.Time{Time: noon}
		}, false, "", time.Time{}},
		"its own disk": {func(s *attachment.Start, a *spec.VirtualMachineBlockDeviceAttachment) {
			own := spec.RunnerDataClaimName("web")
			a.Spec.BlockDeviceRef.Name, s.Claims[0].Name = own, own
		}, false, "", time.Time{}},
		"an image's": {func(s *attachment.Start, _ *spec.VirtualMachineBlockDeviceAttachment) {
			s.Claims[0].Labels, s.Claims[0].Annotations = map[string]string{names.LabelImage: "i"}, map[string]string{names.AnnotationMadeFor: "i"}
		}, false, "", time.Time{}},
		"no volume": {func(s *attachment.Start, _ *spec.VirtualMachineBlockDeviceAttachment) {
			s.Claims[0].Status.Phase = corev1.ClaimPending
		}, false, "", time.Time{}},
		"claim going": {func(s *attachment.Start, _ *spec.VirtualMachineBlockDeviceAttachment) {
			s.Claims[0].DeletionTimestamp = &metav1.Time{Time: noon}
		}, false, "", time.Time{}},
		"no claim": {func(s *attachment.Start, _ *spec.VirtualMachineBlockDeviceAttachment) { s.Claims = nil }, false, "", time.Time{}},
	} {
		mine := *a.DeepCopy()
		s := attachment.Start{Machine: vm, Claims: []corev1.PersistentVolumeClaim{*claim.DeepCopy()}, Now: noon}
		c.change(&s, &mine)
		s.Attachments = []spec.VirtualMachineBlockDeviceAttachment{mine}
		all, awaited, until := attachment.Mounts(s)
		if (len(all) == 1) != c.mounts || awaited != c.awaited || !until.Equal(c.until) {
			t.Errorf("%s: %+v, %q until %v", name, all, awaited, until)
		}
	}
}
