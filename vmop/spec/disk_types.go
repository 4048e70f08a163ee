package spec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Disk is a disk or a CD drive: a volume made from a template, an existing
// volume claim or a CD image.
//
// +kubebuilder:validation:XValidation:rule="(has(self.volumeClaimTemplate) ? 1 : 0) + (has(self.persistentVolumeClaim) ? 1 : 0) + (has(self.cdrom) ? 1 : 0) == 1",message="give exactly one of volumeClaimTemplate, persistentVolumeClaim and cdrom"
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
