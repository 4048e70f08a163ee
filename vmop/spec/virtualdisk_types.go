package spec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VirtualDisk is a disk that exists by itself, before, beside and after the machines
// that use it: a volume claim that the operator makes, and fills once. The names are
// Deckhouse Virtualization's. (Added by vmop.)
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=virtualdisks,singular=virtualdisk,shortName=vd;vds,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 60",message="the name of a disk has at most 60 characters"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.capacity`
// +kubebuilder:printcolumn:name="VirtualMachine",type=string,JSONPath=`.status.attachedToVirtualMachines[0].name`
// +kubebuilder:printcolumn:name="StorageClass",type=string,priority=1,JSONPath=`.spec.persistentVolumeClaim.storageClassName`
// +kubebuilder:printcolumn:name="Claim",type=string,priority=1,JSONPath=`.status.target.persistentVolumeClaim`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualDisk struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what the disk is.
	// +kubebuilder:validation:XValidation:rule="has(self.dataSource) == has(oldSelf.dataSource) && (!has(self.dataSource) || self.dataSource == oldSelf.dataSource)",message="the source of a disk cannot be changed; make another disk"
	// +kubebuilder:validation:Required
	Spec VirtualDiskSpec `json:"spec"`
	// status says what has become of it, as the operator has seen it.
	// +optional
	Status VirtualDiskStatus `json:"status,omitempty,omitzero"`
}

// VirtualDiskList is a list of disks.
//
// +kubebuilder:object:root=true
type VirtualDiskList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	// Items are the disks.
	Items []VirtualDisk `json:"items"`
}

// VirtualDiskSpec is what a disk is.
//
// +kubebuilder:validation:XValidation:rule="!has(self.dataSource) || !has(self.persistentVolumeClaim.volumeMode) || self.persistentVolumeClaim.volumeMode == 'Filesystem'",message="a disk with a source is a file: volumeMode Block is for an empty one"
type VirtualDiskSpec struct {
	// persistentVolumeClaim is what the disk's volume claim is made with.
	// +kubebuilder:validation:Required
	PersistentVolumeClaim VirtualDiskClaim `json:"persistentVolumeClaim"`
	// dataSource is what the disk is a copy of. Without it the disk is empty. It
	// cannot be changed.
	// +optional
	DataSource *VirtualDiskSource `json:"dataSource,omitempty"`
}

// VirtualDiskClaim is what a disk's volume claim is made with.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="the storage class of a disk cannot be changed; make another disk"
// +kubebuilder:validation:XValidation:rule="has(self.volumeMode) == has(oldSelf.volumeMode) && (!has(self.volumeMode) || self.volumeMode == oldSelf.volumeMode)",message="the volumeMode of a disk cannot be changed; make another disk"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0",message="a disk does not shrink: size must not be less than it was"
type VirtualDiskClaim struct {
	// storageClassName is the storage class; an empty string asks for a volume without
	// one, no value for the cluster's default class. It cannot be changed.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// size is that of the disk, as a quantity of bytes. An image is enlarged to it, and
	// refused if it is larger. It may grow, where the storage class allows that.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",message="must be a quantity of bytes greater than 0, such as 20Gi"
	// +kubebuilder:validation:Required
	Size resource.Quantity `json:"size"`
	// volumeMode is Block (a block device is the disk) or Filesystem (a file on the
	// volume is). Without it an empty disk is a block device, and one with a source a
	// file. It cannot be changed.
	// +kubebuilder:validation:Enum=Block;Filesystem
	// +optional
	VolumeMode *corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`
}

// VirtualDiskSourceType says where what a disk is a copy of is.
//
// +kubebuilder:validation:Enum=HTTP;ContainerImage
type VirtualDiskSourceType string

// The types of sources.
const (
	// DiskSourceHTTP is a server of http or https.
	DiskSourceHTTP VirtualDiskSourceType = "HTTP"
	// DiskSourceContainerImage is a container image that has the disk in its directory
	// /disk.
	DiskSourceContainerImage VirtualDiskSourceType = "ContainerImage"
)

// VirtualDiskSource is what a disk is a copy of. What it is decides what is in it: raw
// or qcow2, also packed by gzip, xz or zstd.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'HTTP') == has(self.http)",message="http is for type HTTP, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ContainerImage') == has(self.containerImage)",message="containerImage is for type ContainerImage, which needs it"
type VirtualDiskSource struct {
	// type is HTTP or ContainerImage.
	// +kubebuilder:validation:Required
	Type VirtualDiskSourceType `json:"type"`
	// http is a file of a server.
	// +optional
	HTTP *VirtualDiskHTTP `json:"http,omitempty"`
	// containerImage is a container image with a disk.
	// +optional
	ContainerImage *VirtualDiskContainerImage `json:"containerImage,omitempty"`
}

// VirtualDiskHTTP is a file of a server.
type VirtualDiskHTTP struct {
	// url is where it is: http://… or https://….
	// +kubebuilder:validation:Pattern=`^https?://`
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Required
	URL string `json:"url"`
	// checksum is that of the file, before it is unpacked. Without it the server is
	// trusted.
	// +optional
	Checksum *VirtualDiskChecksum `json:"checksum,omitempty"`
	// caBundle are certificates (PEM) that the server may be trusted by, beside those
	// of the runner's image.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CABundle string `json:"caBundle,omitempty"`
}

// VirtualDiskChecksum is a checksum.
//
// +kubebuilder:validation:XValidation:rule="has(self.sha256) != has(self.sha512)",message="give one of sha256 and sha512"
type VirtualDiskChecksum struct {
	// sha256 are the 64 hexadecimal digits of an SHA-256.
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{64}$`
	// +kubebuilder:validation:MaxLength=64
	// +optional
	SHA256 string `json:"sha256,omitempty"`
	// sha512 are the 128 hexadecimal digits of an SHA-512.
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{128}$`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	SHA512 string `json:"sha512,omitempty"`
}

// VirtualDiskContainerImage is a container image with a disk.
type VirtualDiskContainerImage struct {
	// image is its name, such as quay.io/containerdisks/fedora:43; with @sha256:… it is
	// that very image.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Required
	Image string `json:"image"`
	// path is that of the disk in the image; without it it is the only file in /disk.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`
	// caBundle are certificates (PEM) that the registry may be trusted by, beside those
	// of the runner's image.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CABundle string `json:"caBundle,omitempty"`
}

// DiskPhase sums up what has become of a disk.
//
// +kubebuilder:validation:Enum=Pending;Provisioning;WaitForFirstConsumer;Ready;Resizing;Failed;Terminating
type DiskPhase string

// The phases of disks.
const (
	// DiskPending: its volume claim cannot be made yet.
	DiskPending DiskPhase = "Pending"
	// DiskProvisioning: it is being made.
	DiskProvisioning DiskPhase = "Provisioning"
	// DiskWaitForFirstConsumer: it has no volume yet, and may get one when the first
	// machine uses it.
	DiskWaitForFirstConsumer DiskPhase = "WaitForFirstConsumer"
	// DiskReady: machines can use it.
	DiskReady DiskPhase = "Ready"
	// DiskResizing: machines can use it, and it grows.
	DiskResizing DiskPhase = "Resizing"
	// DiskFailed: nothing will come of it without somebody's help.
	DiskFailed DiskPhase = "Failed"
	// DiskTerminating: it is being deleted.
	DiskTerminating DiskPhase = "Terminating"
)

// Usable reports whether a machine may use a disk: it is what it is to be, or becomes so
// by being used.
func (p DiskPhase) Usable() bool {
	return p == DiskReady || p == DiskResizing || p == DiskWaitForFirstConsumer
}

// VirtualDiskStatus is what has become of a disk.
type VirtualDiskStatus struct {
	// phase sums it up in one word.
	// +optional
	Phase DiskPhase `json:"phase,omitempty"`
	// observedGeneration is the generation of the specification that it is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// capacity is what the volume has, as a quantity of bytes.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// format is that of the file that the disk is: raw or qcow2. It is empty for a
	// block device.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Format string `json:"format,omitempty"`
	// target is where the disk is.
	// +optional
	Target *VirtualDiskTarget `json:"target,omitempty"`
	// import is what is known of the attempts to fill the disk.
	// +optional
	Import *VirtualDiskImport `json:"import,omitempty"`
	// attachedToVirtualMachines are the machines that have the disk in their
	// specification, or in their pod.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	AttachedToVirtualMachines []AttachedVirtualMachine `json:"attachedToVirtualMachines,omitempty"`
	// conditions are Ready, Resized and InUse.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// VirtualDiskTarget is where a disk is.
type VirtualDiskTarget struct {
	// persistentVolumeClaim is the name of its volume claim.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PersistentVolumeClaim string `json:"persistentVolumeClaim,omitempty"`
	// persistentVolumeClaimUID is that claim, and no other of its name.
	// +optional
	PersistentVolumeClaimUID types.UID `json:"persistentVolumeClaimUID,omitempty"`
}

// VirtualDiskImport is what is known of the attempts to fill a disk.
type VirtualDiskImport struct {
	// attempts is how often it has failed.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// podUID is the pod that was counted last.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`
	// failedAt is when that was.
	// +optional
	FailedAt *metav1.Time `json:"failedAt,omitempty"`
	// message is what it said.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
	// final says that another attempt would end likewise.
	// +optional
	Final bool `json:"final,omitempty"`
}

// AttachedVirtualMachine is a machine that has a disk.
type AttachedVirtualMachine struct {
	// name is that of the machine.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Required
	Name string `json:"name"`
}
