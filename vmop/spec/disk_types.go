package spec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:validation:XValidation:rule="(has(self.volumeClaimTemplate) ? 1 : 0) + (has(self.persistentVolumeClaim) ? 1 : 0) + (has(self.cdrom) ? 1 : 0) + (has(self.image) ? 1 : 0) + (has(self.containerDisk) ? 1 : 0) == 1",message="give exactly one of volumeClaimTemplate, persistentVolumeClaim, cdrom, image and containerDisk"

// Disk is a disk or a CD drive: a volume made from a template, an existing
// volume claim, a copy of an image, a disk in a container image, or a CD image.
type Disk struct {
	// +optional

	// volumeClaimTemplate makes the operator create a volume claim for the
	// disk. The claim is never deleted by the operator.
	VolumeClaimTemplate *VolumeClaimTemplate `json:"volumeClaimTemplate,omitempty"`

	// +optional

	// persistentVolumeClaim uses an existing volume claim. (Added by vmop.)
	PersistentVolumeClaim *VolumeClaimReference `json:"persistentVolumeClaim,omitempty"`

	// +optional

	// cdrom is a CD drive.
	Cdrom *Cdrom `json:"cdrom,omitempty"`

	// +optional

	// image makes the disk a copy of an image before the machine's first start. A
	// disk that is there is never overwritten. (Added by vmop.)
	Image *DiskImage `json:"image,omitempty"`

	// +optional

	// containerDisk makes the disk a copy of one in a container image: a new one at
	// each start, or with persistent: true before the first. (Added by vmop.)
	ContainerDisk *ContainerDisk `json:"containerDisk,omitempty"`

	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional

	// bootindex is the disk's place in the boot order; the lowest is tried
	// first. If no disk has one, the order of the list is the boot order.
	Bootindex *int32 `json:"bootindex,omitempty"`
}

// VolumeClaimTemplate describes the volume claim of a disk.
type VolumeClaimTemplate struct {
	// +optional

	// metadata names the disk and adds to the claim's metadata.
	Metadata EmbeddedObjectMeta `json:"metadata,omitempty,omitzero"`

	// +kubebuilder:default={}
	// +optional

	// spec is the specification of the claim.
	Spec VolumeClaimSpec `json:"spec,omitempty,omitzero"`
}

// EmbeddedObjectMeta is the part of an object's metadata that a template may
// give.
type EmbeddedObjectMeta struct {
	// +kubebuilder:validation:MaxLength=253
	// +optional

	// name is the stem of the disk's name: the claim is called
	// <machine>-<name>-disk. Without it the disk is called disk-<n>, n being
	// its position among the volume claim templates, counted from 0.
	Name string `json:"name,omitempty"`

	// +kubebuilder:validation:MaxProperties=256
	// +optional

	// labels are added to the claim's labels.
	Labels map[string]string `json:"labels,omitempty"`

	// +kubebuilder:validation:MaxProperties=256
	// +optional

	// annotations are added to the claim's annotations.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// VolumeClaimSpec is the part of a volume claim's specification that a disk
// may choose. The fields are those of
// [k8s.io/api/core/v1.PersistentVolumeClaimSpec], with other defaults.
type VolumeClaimSpec struct {
	// +kubebuilder:default={ReadWriteOnce}
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional

	// accessModes are the access modes that the volume must have.
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// +optional

	// selector selects existing volumes by their labels.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// +optional

	// resources are the wanted resources; requests.storage is the size of the
	// disk as a quantity of bytes.
	Resources corev1.VolumeResourceRequirements `json:"resources,omitempty,omitzero"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// volumeName binds the claim to the volume of that name.
	VolumeName string `json:"volumeName,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// storageClassName is the storage class; an empty string asks for a volume
	// without one, no value for the cluster's default class.
	StorageClassName *string `json:"storageClassName,omitempty"`

	// +kubebuilder:default=Block
	// +kubebuilder:validation:Enum=Block;Filesystem
	// +optional

	// volumeMode is Block (a block device is the disk) or Filesystem (a file
	// on the volume is; added by vmop).
	VolumeMode *corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`

	// +optional

	// dataSource is what the volume is filled from: a volume snapshot or
	// another claim in the same namespace.
	DataSource *corev1.TypedLocalObjectReference `json:"dataSource,omitempty"`

	// +optional

	// dataSourceRef is what the volume is filled from, by any populator.
	DataSourceRef *corev1.TypedObjectReference `json:"dataSourceRef,omitempty"`
}

// VolumeClaimReference names an existing volume claim.
type VolumeClaimReference struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253

	// claimName is the name of the claim, in the machine's namespace.
	ClaimName string `json:"claimName"`
}

// Cdrom is a CD drive. Its image can be changed while the machine runs.
type Cdrom struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096

	// image is the CD in the drive: a path relative to the image repository,
	// an absolute path or a URL. An empty string is an empty drive.
	Image string `json:"image"`
}

// DiskImage is what a disk is a copy of.
type DiskImage struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=58

	// name is the stem of the disk's name: the disk is called <name>-disk and its
	// claim <machine>-<name>-disk, as with volumeClaimTemplate.
	Name string `json:"name"`

	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096

	// source is where the image is: http://…, https://… or
	// oci://REGISTRY/REPOSITORY:TAG, a container image that has it in its directory
	// /disk. On one host also a file, absolute or relative to the folder of the
	// manifest, oci-archive:FILE and oci-layout:DIRECTORY. What it is decides what
	// is in it: raw, qcow2, vmdk or vdi, also packed by gzip, xz or zstd.
	Source string `json:"source"`

	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// path is that of the disk in a container image; without it it is the only file
	// in /disk.
	Path string `json:"path,omitempty"`

	// +kubebuilder:validation:MaxLength=135
	// +optional

	// checksum is sha256:HEX or sha512:HEX of what the source has, before it is
	// unpacked; for a container image its digest. Without it the source is trusted.
	Checksum string `json:"checksum,omitempty"`

	// +kubebuilder:validation:MaxLength=65536
	// +optional

	// caBundle are certificates (PEM) that the server may be trusted by, beside
	// those of the host.
	CABundle string `json:"caBundle,omitempty"`

	// +kubebuilder:validation:Required

	// size is that of the disk, as a quantity of bytes. An image is enlarged to
	// it, and refused if it is larger.
	Size *resource.Quantity `json:"size"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// storageClassName is the storage class of the disk's claim; see
	// volumeClaimTemplate.
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="!(has(self.persistent) && self.persistent) || has(self.size)",message="a persistent disk needs a size"

// ContainerDisk is a disk in a container image, as KubeVirt has them.
type ContainerDisk struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=58

	// name is the stem of the disk's name, which is <name>-disk.
	Name string `json:"name"`

	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096

	// image is the container image, such as quay.io/containerdisks/fedora:43. On one
	// host also oci-archive:FILE and oci-layout:DIRECTORY, relative to the folder of
	// the manifest.
	Image string `json:"image"`

	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// path is that of the disk in the image; without it it is the only file in /disk.
	Path string `json:"path,omitempty"`

	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional

	// pullPolicy says when the registry is asked on one host, which keeps images:
	// at each making of the disk (Always), if the image is not there (IfNotPresent)
	// or never.
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`

	// +kubebuilder:default=false
	// +optional

	// persistent keeps what the guest writes: the disk is made before the first
	// start only. Otherwise each start has a new one.
	Persistent bool `json:"persistent,omitempty"`

	// +optional

	// size is that of the disk, as a quantity of bytes; without it that of the
	// image. A persistent disk needs one.
	Size *resource.Quantity `json:"size,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// storageClassName is the storage class of a persistent disk's claim; see
	// volumeClaimTemplate.
	StorageClassName *string `json:"storageClassName,omitempty"`
}
