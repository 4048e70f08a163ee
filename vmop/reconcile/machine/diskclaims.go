package machine

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func ofReferred(c *corev1.PersistentVolumeClaim, ref *spec.BlockDeviceRef) bool {
	if ref.IsImage() {
		kind, name := objects.ImageOf(c)
		return kind == ref.Kind && name == ref.Name
	}
	return ofDisk(c, ref.Name)
}

// ofDisk reports whether a claim belongs to the VirtualDisk of a name, by label and mark: one
// that merely has the name belongs to a user.
func ofDisk(c *corev1.PersistentVolumeClaim, disk string) bool {
	return c.Labels[names.LabelDisk] == disk && c.Annotations[names.AnnotationMadeFor] != ""
}

func ofImage(pvc *corev1.PersistentVolumeClaim) bool {
	kind, _ := objects.ImageOf(pvc)
	return kind != ""
}

// beingFilled reports whether a claim is that of a VirtualDisk whose content is not complete: the
// claim is marked when it is. An empty block device is never being filled.
func beingFilled(pvc *corev1.PersistentVolumeClaim) bool {
	return pvc.Labels[names.LabelDisk] != "" && pvc.Annotations[names.AnnotationMadeFor] != "" &&
		(!isBlock(pvc) || pvc.Annotations[names.AnnotationToBeFilled] != "") && pvc.Annotations[names.AnnotationFilled] == ""
}

// virtualDiskSize returns the size a VirtualDisk in a claim must have: the disk's, limited by the
// volume; 0 for any other claim.
func virtualDiskSize(pvc *corev1.PersistentVolumeClaim) int64 {
	if pvc == nil || pvc.Labels[names.LabelDisk] == "" || pvc.Annotations[names.AnnotationMadeFor] == "" {
		return 0
	}
	if beingFilled(pvc) {
		return 0
	}
	want, has := pvc.Spec.Resources.Requests[corev1.ResourceStorage], pvc.Status.Capacity[corev1.ResourceStorage]
	if spec.CompareQuantities(has, want) < 0 {
		return spec.Bytes(has)
	}
	return spec.Bytes(want)
}

func isBlock(pvc *corev1.PersistentVolumeClaim) bool {
	return pvc.Spec.VolumeMode != nil && *pvc.Spec.VolumeMode == corev1.PersistentVolumeBlock
}
