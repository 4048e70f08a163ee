package spectest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
)

// Image generates images that [spec.ValidateImage] finds nothing wrong with, sometimes
// with a status.
func Image() *rapid.Generator[*spec.VirtualImage] {
	return rapid.Custom(func(t *rapid.T) *spec.VirtualImage {
		i := &spec.VirtualImage{
			TypeMeta:   metav1.TypeMeta{APIVersion: spec.GroupVersion().String(), Kind: spec.KindImage},
			ObjectMeta: drawMeta(t, spec.MaxDiskName),
		}
		i.Spec = spec.VirtualImageSpec{
			PersistentVolumeClaim: drawImageClaim(t),
			DataSource: *drawSource(t, i.Name, spec.KindImage,
				spec.DiskSourceHTTP, spec.DiskSourceContainerImage, spec.DiskSourceObjectRef, spec.DiskSourceUpload),
		}
		if hasStatus(t) {
			drawImageStatus(t, &i.Status)
			i.Status.Download = drawDownload(t)
		}
		return i
	})
}

// ClusterImage generates images of the cluster that [spec.ValidateClusterImage] finds
// nothing wrong with, sometimes with a status.
func ClusterImage() *rapid.Generator[*spec.ClusterVirtualImage] {
	return rapid.Custom(func(t *rapid.T) *spec.ClusterVirtualImage {
		i := &spec.ClusterVirtualImage{
			TypeMeta:   metav1.TypeMeta{APIVersion: spec.GroupVersion().String(), Kind: spec.KindClusterImage},
			ObjectMeta: drawMeta(t, spec.MaxClusterImageName),
		}
		i.Namespace = "" // it is in none
		i.Spec = spec.VirtualImageSpec{
			PersistentVolumeClaim: drawImageClaim(t),
			DataSource:            *drawSource(t, i.Name, spec.KindClusterImage, spec.DiskSourceHTTP, spec.DiskSourceContainerImage),
		}
		if hasStatus(t) {
			drawImageStatus(t, &i.Status)
			i.Status.SHA256 = rapid.SampledFrom([]string{"", strings.Repeat("0f", 32)}).Draw(t, "sha256")
		}
		return i
	})
}

func drawImageClaim(t *rapid.T) spec.VirtualImageClaim {
	return spec.VirtualImageClaim{
		Size: drawSize(t), StorageClassName: drawLongStorageClass(t),
		AccessMode: rapid.SampledFrom([]corev1.PersistentVolumeAccessMode{"", corev1.ReadWriteOnce, corev1.ReadWriteMany}).Draw(t, "accessMode"),
	}
}

func drawImageStatus(t *rapid.T, s *spec.VirtualImageStatus) {
	s.Phase = rapid.SampledFrom([]spec.ImagePhase{
		"", spec.ImagePending, spec.ImageProvisioning, spec.ImageWaitForUserUpload,
		spec.ImageReady, spec.ImageFailed, spec.ImageTerminating,
	}).Draw(t, "phase")
	s.ObservedGeneration = rapid.Int64Range(0, 9).Draw(t, "observedGeneration")
	s.Format = rapid.SampledFrom([]string{"", "raw", "qcow2", "iso"}).Draw(t, "format")
	if maybe(t, "size") {
		s.Size = new(Bytes(0, 1<<44).Draw(t, "size"))
	}
	if maybe(t, "storedSize") {
		s.StoredSize = new(Bytes(0, 1<<44).Draw(t, "storedSize"))
	}
	s.Target, s.Import, s.Progress = drawTarget(t), drawImport(t), drawProgress(t)
	s.Conditions = drawConditions(t, "Ready", "InUse")
}
