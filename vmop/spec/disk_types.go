package spec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Disk is a disk or a CD drive: a volume made from a template, an existing
// volume claim, a copy of an image, a disk in a container image, or a CD image.
//
// +kubebuilder:validation:XValidation:rule="(has(self.volumeClaimTemplate) ? 1 : 0) + (has(self.persistentVolumeClaim) ? 1 : 0) + (has(self.cdrom) ? 1 : 0) + (has(self.image) ? 1 : 0) + (has(self.containerDisk) ? 1 : 0) == 1",message="give exactly one of volumeClaimTemplate, persistentVolumeClaim, cdrom, image and containerDisk"
type Disk struct {
	// volumeClaimTemplate makes the operator create a volume claim for the
	// disk. The claim is never deleted by the operator.
	// +optional
	VolumeClaimTemplate *VolumeClaimTemplate `json:"volumeClaimTemplate,omitempty"`
	// persistentVolumeClaim uses an existing volume claim. (Added by vmop.)
	// +optional
	PersistentVolumeClaim *VolumeClaimReference `json:"persistentVolumeClaim,omitempty"`
	// cdrom is a CD drive.
	// +optional
	Cdrom *Cdrom `json:"cdrom,omitempty"`
	// image makes the disk a copy of an image before the machine's first start. A
	// disk that is there is never overwritten. (Added by vmop.)
	// +optional
	Image *DiskImage `json:"image,omitempty"`
	// containerDisk makes the disk a copy of one in a container image: a new one at
	// each start, or with persistent: true before the first. (Added by vmop.)
	// +optional
	ContainerDisk *ContainerDisk `json:"containerDisk,omitempty"`
	// bootindex is the disk's place in the boot order; the lowest is tried
	// first. If no disk has one, the order of the list is the boot order.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Bootindex *int32 `json:"bootindex,omitempty"`
}

// VolumeClaimTemplate describes the volume claim of a disk.
type VolumeClaimTemplate struct {
	// metadata names the disk and adds to the claim's metadata.
	// +optional
	Metadata EmbeddedObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the specification of the claim.
	// +kubebuilder:default={}
	// +optional
	Spec VolumeClaimSpec `json:"spec,omitempty,omitzero"`
}

// EmbeddedObjectMeta is the part of an object's metadata that a template may
// give.
type EmbeddedObjectMeta struct {
	// name is the stem of the disk's name: the claim is called
	// <machine>-<name>-disk. Without it the disk is called disk-<n>, n being
	// its position among the volume claim templates, counted from 0.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// labels are added to the claim's labels.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are added to the claim's annotations.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// VolumeClaimSpec is the part of a volume claim's specification that a disk
// may choose. The fields are those of
// [k8s.io/api/core/v1.PersistentVolumeClaimSpec], with other defaults.
type VolumeClaimSpec struct {
	// accessModes are the access modes that the volume must have.
	// +kubebuilder:default={ReadWriteOnce}
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
	// selector selects existing volumes by their labels.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// resources are the wanted resources; requests.storage is the size of the
	// disk as a quantity of bytes.
	// +optional
	Resources corev1.VolumeResourceRequirements `json:"resources,omitempty,omitzero"`
	// volumeName binds the claim to the volume of that name.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	VolumeName string `json:"volumeName,omitempty"`
	// storageClassName is the storage class; an empty string asks for a volume
	// without one, no value for the cluster's default class.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// volumeMode is Block (a block device is the disk) or Filesystem (a file
	// on the volume is; added by vmop).
	// +kubebuilder:default=Block
	// +kubebuilder:validation:Enum=Block;Filesystem
	// +optional
	VolumeMode *corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`
	// dataSource is what the volume is filled from: a volume snapshot or
	// another claim in the same namespace.
	// +optional
	DataSource *corev1.TypedLocalObjectReference `json:"dataSource,omitempty"`
	// dataSourceRef is what the volume is filled from, by any populator.
	// +optional
	DataSourceRef *corev1.TypedObjectReference `json:"dataSourceRef,omitempty"`
}

// VolumeClaimReference names an existing volume claim.
type VolumeClaimReference struct {
	// claimName is the name of the claim, in the machine's namespace.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`
}

// Cdrom is a CD drive. Its image can be changed while the machine runs.
type Cdrom struct {
	// image is the CD in the drive: a path relative to the image repository,
	// an absolute path or a URL. An empty string is an empty drive.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096
	Image string `json:"image"`
}

// DiskImage is what a disk is a copy of.
type DiskImage struct {
	// name is the stem of the disk's name: the disk is called <name>-disk and its
	// claim <machine>-<name>-disk, as with volumeClaimTemplate.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=58
	Name string `json:"name"`
	// source is where the image is: http://…, https://… or
	// oci://REGISTRY/REPOSITORY:TAG, a container image that has it in its directory
	// /disk. On one host also a file, absolute or relative to the folder of the
	// manifest, oci-archive:FILE and oci-layout:DIRECTORY. What it is decides what
	// is in it: raw, qcow2, vmdk or vdi, also packed by gzip, xz or zstd.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Source string `json:"source"`
	// path is that of the disk in a container image; without it it is the only file
	// in /disk.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`
	// checksum is sha256:HEX or sha512:HEX of what the source has, before it is
	// unpacked; for a container image its digest. Without it the source is trusted.
	// +kubebuilder:validation:MaxLength=135
	// +optional
	Checksum string `json:"checksum,omitempty"`
	// caBundle are certificates (PEM) that the server may be trusted by, beside
	// those of the host.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CABundle string `json:"caBundle,omitempty"`
	// size is that of the disk, as a quantity of bytes. An image is enlarged to
	// it, and refused if it is larger.
	// +kubebuilder:validation:Required
	Size *resource.Quantity `json:"size"`
	// storageClassName is the storage class of the disk's claim; see
	// volumeClaimTemplate.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// ContainerDisk is a disk in a container image, as KubeVirt has them.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.persistent) && self.persistent) || has(self.size)",message="a persistent disk needs a size"
type ContainerDisk struct {
	// name is the stem of the disk's name, which is <name>-disk.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=58
	Name string `json:"name"`
	// image is the container image, such as quay.io/containerdisks/fedora:43. On one
	// host also oci-archive:FILE and oci-layout:DIRECTORY, relative to the folder of
	// the manifest.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Image string `json:"image"`
	// path is that of the disk in the image; without it it is the only file in /disk.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`
	// pullPolicy says when the registry is asked on one host, which keeps images:
	// at each making of the disk (Always), if the image is not there (IfNotPresent)
	// or never.
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
	// persistent keeps what the guest writes: the disk is made before the first
	// start only. Otherwise each start has a new one.
	// +optional
	Persistent bool `json:"persistent,omitempty"`
	// size is that of the disk, as a quantity of bytes; without it that of the
	// image. A persistent disk needs one.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// storageClassName is the storage class of a persistent disk's claim; see
	// volumeClaimTemplate.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// Template is what the disk's own volume claim is made from: its
// volumeClaimTemplate, or what image or a persistent containerDisk come to. It is nil
// for a disk that has no claim of its own. It must not be changed.
func (d *Disk) Template() *VolumeClaimTemplate {
	switch {
	case d.VolumeClaimTemplate != nil:
		return d.VolumeClaimTemplate
	case d.Image != nil:
		return imageTemplate(d.Image.Name, d.Image.Size, d.Image.StorageClassName)
	case d.ContainerDisk != nil && d.ContainerDisk.Persistent:
		return imageTemplate(d.ContainerDisk.Name, d.ContainerDisk.Size, d.ContainerDisk.StorageClassName)
	}
	return nil
}

// imageTemplate is a claim with a file system: a file gets its name when it is whole.
func imageTemplate(name string, size *resource.Quantity, class *string) *VolumeClaimTemplate {
	t := &VolumeClaimTemplate{Metadata: EmbeddedObjectMeta{Name: name}}
	if size != nil {
		t.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *size}
	}
	t.Spec.StorageClassName = class
	mode := corev1.PersistentVolumeFilesystem
	t.Spec.VolumeMode = &mode
	defaultClaim(&t.Spec)
	return t
}

// Ephemeral reports whether the disk is a new one at each start.
func (d *Disk) Ephemeral() bool { return d.ContainerDisk != nil && !d.ContainerDisk.Persistent }
