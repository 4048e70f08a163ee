package disk

import (
	"strconv"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// subject is what is decided about: a disk, or an image. For its creation an image is a disk with
// a source and a size that never changes.
type subject struct {
	kind, short, noun string
	// in is kubectl's option for the namespace of its objects, if that is another one.
	in string
	// finalizer holds it; claimName and podName are the names of its objects.
	finalizer, claimName, podName string
	// validate is [spec.Validate] of it.
	filled   objects.Filled
	validate func() field.ErrorList
	// readyReason and readyText report that it exists.
	readyReason, readyText string
	// unusedText reports that no machine has it, usedText and heldText that several do, with
	// their names, and copyText the consequence of its being copied.
	unusedText, usedText, heldText, copyText string
	// object is the stored object, or nil.
	object metav1.Object
	// disk is the disk, or the image as one; image is the status of an image, nil for a disk.
	disk  *spec.VirtualDisk
	image *spec.VirtualImageStatus
}

func subjectOf(s *Snapshot) subject {
	switch {
	case s.Disk != nil:
		return subject{
			kind: names.KindDisk, short: "vd", noun: "disk", finalizer: names.FinalizerDisk,
			validate:    func() field.ErrorList { return spec.ValidateDisk(s.Disk) },
			readyReason: conditions.ReasonDiskReady, readyText: "machines can use it",
			unusedText: "no machine has it", usedText: "it is a disk of %s", heldText: "it is a disk of %s: remove it there, or delete that machine",
			copyText: ", and machines that have it wait", object: s.Disk, disk: s.Disk,
		}.of(objects.FilledDisk(s.Disk))
	case s.Image != nil:
		i := s.Image
		return subject{
			kind: names.KindImage, short: "vi", noun: "image", finalizer: names.FinalizerImage,
			validate:    func() field.ErrorList { return spec.ValidateImage(i) },
			readyReason: conditions.ReasonImageReady, readyText: "disks can be made of it",
			unusedText: "nobody uses it", usedText: "it is used by %s", heldText: "it is used by %s: remove it there, or delete that machine",
			object: i, disk: asDisk(&i.ObjectMeta, &i.Spec, &i.Status), image: &i.Status,
		}.of(objects.FilledImage(i))
	case s.ClusterImage != nil:
		i := s.ClusterImage
		return subject{
			kind: names.KindClusterImage, short: "cvi", noun: "image", finalizer: names.FinalizerImage, in: " -n " + s.Settings.ImageNamespace,
			validate:    func() field.ErrorList { return spec.ValidateClusterImage(i) },
			readyReason: conditions.ReasonImageReady, readyText: "disks can be made of it in all namespaces",
			unusedText: "nobody uses it", usedText: "it is used by %s", heldText: "it is used by %s: remove it there, or delete that machine",
			object: i, disk: asDisk(&i.ObjectMeta, &i.Spec, &i.Status), image: &i.Status,
		}.of(objects.FilledClusterImage(i, s.Settings.ImageNamespace))
	}
	return subject{}
}

func (s subject) of(f objects.Filled) subject {
	s.filled, s.claimName, s.podName = f, f.ClaimName(), f.PodName()
	return s
}

func asDisk(meta *metav1.ObjectMeta, i *spec.VirtualImageSpec, s *spec.VirtualImageStatus) *spec.VirtualDisk {
	c := &i.PersistentVolumeClaim
	return &spec.VirtualDisk{
		ObjectMeta: *meta,
		Spec: spec.VirtualDiskSpec{
			PersistentVolumeClaim: spec.VirtualDiskClaim{StorageClassName: c.StorageClassName, Size: c.Size, VolumeMode: new(corev1.PersistentVolumeFilesystem)},
			DataSource:            &i.DataSource,
		},
		Status: spec.VirtualDiskStatus{
			Phase: spec.DiskPhase(s.Phase), ObservedGeneration: s.ObservedGeneration, Format: s.Format, Target: s.Target, Import: s.Import, Progress: s.Progress, Download: s.Download, Conditions: s.Conditions,
		},
	}
}

// marked returns the number of bytes in an annotation of an image's claim, or 0.
func marked(c *corev1.PersistentVolumeClaim, key string) resource.Quantity {
	n, err := strconv.ParseInt(c.Annotations[key], 10, 64)
	if err != nil || n < 0 {
		n = 0
	}
	return *resource.NewQuantity(n, resource.BinarySI)
}
