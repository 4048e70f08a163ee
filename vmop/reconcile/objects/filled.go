package objects

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Filled is a disk or image with a volume claim that is created for it and filled once. Its
// fields are the differences between the kinds.
type Filled struct {
	kind, label, claim string
	// namespace is that of the created objects.
	name, namespace string
	uid             types.UID
	size            resource.Quantity
	class           *string
	mode            corev1.PersistentVolumeMode
	access          corev1.PersistentVolumeAccessMode
	source          *spec.VirtualDiskSource
	// request and download are the last requests for an upload and a download.
	request, download string
	// keep: it is an image, which is stored unchanged.
	keep bool
	// server serves the cluster image that it is a copy of.
	server *Server
}

// FilledDisk returns a disk as a [Filled]. The disk must be valid.
func FilledDisk(d *spec.VirtualDisk) Filled {
	c := &d.Spec.PersistentVolumeClaim
	return Filled{
		kind: spec.KindDisk, label: names.LabelDisk, claim: ClaimOfDisk(d.Name), name: d.Name, namespace: d.Namespace, uid: d.UID, request: UploadRequest(d), download: DownloadRequest(d),
		size: c.Size, class: c.StorageClassName, mode: d.Spec.VolumeMode(), access: corev1.ReadWriteOnce, source: d.Spec.DataSource,
	}
}

// FilledImage is [FilledDisk] for an image, which is stored unchanged.
func FilledImage(i *spec.VirtualImage) Filled {
	return filledImage(spec.KindImage, names.LabelImage, ClaimOfImage(i.Name), i.Namespace, &i.ObjectMeta, &i.Spec)
}

// FilledClusterImage is [FilledImage] for an image of the cluster, which is stored in a
// namespace.
func FilledClusterImage(i *spec.ClusterVirtualImage, namespace string) Filled {
	return filledImage(spec.KindClusterImage, names.LabelClusterImage, ClaimOfClusterImage(i.Name), namespace, &i.ObjectMeta, &i.Spec)
}

func filledImage(kind, label, claim, namespace string, meta *metav1.ObjectMeta, s *spec.VirtualImageSpec) Filled {
	c := &s.PersistentVolumeClaim
	return Filled{
		kind: kind, label: label, claim: claim, name: meta.Name, namespace: namespace, uid: meta.UID, request: UploadRequest(meta), download: DownloadRequest(meta),
		size: c.Size, class: c.StorageClassName, mode: corev1.PersistentVolumeFilesystem, access: cmp.Or(c.AccessMode, corev1.ReadWriteOnce),
		source: &s.DataSource, keep: true,
	}
}

// ClaimName returns the name of the claim.
func (f Filled) ClaimName() string { return f.claim }

// PodName returns the name of the pod that fills the claim.
func (f Filled) PodName() string { return ImportPod(f.claim) }

// Block reports whether the claim is a block device rather than a file.
func (f Filled) Block() bool { return f.mode == corev1.PersistentVolumeBlock }

// object returns the metadata of an object owned by the disk or image. Its labels are those by
// which pods of machines are watched, and restricted by policies; it has no machine's name.
func (f Filled) object(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: f.namespace,
		Labels:      map[string]string{names.LabelName: names.AppName, names.LabelManagedBy: names.ManagedBy, f.label: f.name},
		Annotations: map[string]string{names.AnnotationMadeFor: string(f.uid)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: spec.GroupVersion().String(), Kind: f.kind, Name: f.name, UID: f.uid, Controller: new(true),
		}},
	}
}

// VolumeClaim returns the claim. It is owned by the disk or image and deleted with it, unless
// that is deleted with --cascade=orphan.
func (f Filled) VolumeClaim() *corev1.PersistentVolumeClaim {
	pvc := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: names.KindClaim},
		ObjectMeta: f.object(f.claim),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{f.access},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: f.size.DeepCopy()}},
			VolumeMode:  new(f.mode),
		},
	}
	if f.class != nil {
		pvc.Spec.StorageClassName = new(*f.class)
	}
	if f.Block() && f.source != nil {
		pvc.Annotations[names.AnnotationToBeFilled] = string(f.uid)
	}
	return pvc
}

// ImportPod returns the name of the pod that fills the volume claim of a disk or image. There is
// one at a time.
func ImportPod(claim string) string { return claim + "-import" }

// ClaimOfDisk returns the name of the volume claim of a VirtualDisk.
func ClaimOfDisk(name string) string { return spec.VirtualDiskClaimName(name) }

// ClaimOfImage returns the name of the volume claim of a VirtualImage.
func ClaimOfImage(name string) string { return spec.VirtualImageClaimName(name) }

// ClaimOfClusterImage returns the name of the volume claim of a ClusterVirtualImage.
func ClaimOfClusterImage(name string) string { return spec.ClusterVirtualImageClaimName(name) }

// ImporterImage returns the image of pods that fill disks: that of machines which name none.
func ImporterImage(s *Settings) string {
	return RunnerImage(&spec.VirtualMachine{Spec: spec.VirtualMachineSpec{Image: &spec.RunnerImage{Source: DefaultImage()}}}, s)
}

func isBlock(c *corev1.PersistentVolumeClaim) bool {
	return c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// UploadRequest returns the last request for an upload to a disk or an image, or the one that a
// pod was created for; empty if there is none. A long one is replaced by its digest.
func UploadRequest(o metav1.Object) string {
	return request(o.GetAnnotations()[names.AnnotationUploadRequest])
}

// DownloadRequest is [UploadRequest] for a download.
func DownloadRequest(o metav1.Object) string {
	return request(o.GetAnnotations()[names.AnnotationDownloadRequest])
}

// Server is a pod that serves an image of the cluster, and the image.
type Server struct {
	// Address is that of the pod, and Key the fingerprint of its key.
	Address, Key string
	// Claim is the image's, with the file's properties in its annotations.
	Claim *corev1.PersistentVolumeClaim
}

func request(value string) string {
	if len(value) <= maxRequest {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// maxRequest is the longest request that is recorded as it is.
const maxRequest = 64
