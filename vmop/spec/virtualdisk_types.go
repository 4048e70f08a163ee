package spec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=virtualdisks,singular=virtualdisk,shortName=vd;vds,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 60",message="the name of a disk has at most 60 characters"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.capacity`
// +kubebuilder:printcolumn:name="VirtualMachine",type=string,JSONPath=`.status.attachedToVirtualMachines[0].name`
// +kubebuilder:printcolumn:name="StorageClass",type=string,priority=1,JSONPath=`.spec.persistentVolumeClaim.storageClassName`
// +kubebuilder:printcolumn:name="Claim",type=string,priority=1,JSONPath=`.status.target.persistentVolumeClaim`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// VirtualDisk is a disk that exists by itself, before, beside and after the machines
// that use it: a volume claim that the operator makes, and fills once. The names are
// Deckhouse Virtualization's. (Added by vmop.)
type VirtualDisk struct {
	metav1.TypeMeta `json:",inline"`

	// +optional

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="has(self.dataSource) == has(oldSelf.dataSource) && (!has(self.dataSource) || self.dataSource == oldSelf.dataSource)",message="the source of a disk cannot be changed; make another disk"
	// +kubebuilder:validation:Required

	// spec says what the disk is.
	Spec VirtualDiskSpec `json:"spec"`

	// +optional

	// status says what has become of it, as the operator has seen it.
	Status VirtualDiskStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VirtualDiskList is a list of disks.
type VirtualDiskList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	// Items are the disks.
	Items []VirtualDisk `json:"items"`
}

// +kubebuilder:validation:XValidation:rule="!has(self.dataSource) || self.dataSource.type != 'Upload' || !has(self.persistentVolumeClaim.volumeMode) || self.persistentVolumeClaim.volumeMode == 'Filesystem'",message="what is uploaded is a file: volumeMode Block is for other disks"
// +kubebuilder:validation:XValidation:rule="!has(self.persistentVolumeClaim.volumeMode) || self.persistentVolumeClaim.volumeMode != 'Block' || !has(self.dataSource) || !has(self.dataSource.objectRef) || !has(self.dataSource.objectRef.format) || self.dataSource.objectRef.format == 'raw'",message="a block device is raw: format qcow2 is for volumeMode Filesystem"
// +kubebuilder:validation:XValidation:rule="!has(self.persistentVolumeClaim.volumeMode) || self.persistentVolumeClaim.volumeMode != 'Block' || !has(self.dataSource) || !has(self.dataSource.objectRef) || self.dataSource.objectRef.kind != 'ClusterVirtualImage'",message="a disk that is made of an image of the cluster is a file: make a VirtualImage of that, and a block device of the VirtualImage"

// VirtualDiskSpec is what a disk is.
type VirtualDiskSpec struct {
	// +kubebuilder:validation:Required

	// persistentVolumeClaim is what the disk's volume claim is made with.
	PersistentVolumeClaim VirtualDiskClaim `json:"persistentVolumeClaim"`

	// +optional

	// dataSource is what the disk is a copy of. Without it the disk is empty. It
	// cannot be changed.
	DataSource *VirtualDiskSource `json:"dataSource,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="the storage class of a disk cannot be changed; make another disk"
// +kubebuilder:validation:XValidation:rule="has(self.volumeMode) == has(oldSelf.volumeMode) && (!has(self.volumeMode) || self.volumeMode == oldSelf.volumeMode)",message="the volumeMode of a disk cannot be changed; make another disk"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0",message="a disk does not shrink: size must not be less than it was"

// VirtualDiskClaim is what a disk's volume claim is made with.
type VirtualDiskClaim struct {
	// +kubebuilder:validation:MaxLength=253
	// +optional

	// storageClassName is the storage class; an empty string asks for a volume without
	// one, no value for the cluster's default class. It cannot be changed.
	StorageClassName *string `json:"storageClassName,omitempty"`

	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",message="must be a quantity of bytes greater than 0, such as 20Gi"
	// +kubebuilder:validation:Required

	// size is that of the disk, as a quantity of bytes. An image is enlarged to it, and
	// refused if it is larger. It may grow, where the storage class allows that.
	Size resource.Quantity `json:"size"`

	// +kubebuilder:validation:Enum=Block;Filesystem
	// +optional

	// volumeMode is Block (a block device is the disk) or Filesystem (a file on the
	// volume is). Without it an empty disk is a block device, and one with a source a
	// file. It cannot be changed.
	VolumeMode *corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`
}

// +kubebuilder:validation:Enum=HTTP;ContainerImage;ObjectRef;Upload

// VirtualDiskSourceType says where what a disk is a copy of is.
type VirtualDiskSourceType string

// The types of sources.
const (
	// DiskSourceHTTP is a server of http or https.
	DiskSourceHTTP VirtualDiskSourceType = "HTTP"
	// DiskSourceContainerImage is a container image that has the disk in its directory
	// /disk.
	DiskSourceContainerImage VirtualDiskSourceType = "ContainerImage"
	// DiskSourceObjectRef is another disk of the cluster, an image, or a snapshot of a
	// volume.
	DiskSourceObjectRef VirtualDiskSourceType = "ObjectRef"
	// DiskSourceUpload is what somebody uploads.
	DiskSourceUpload VirtualDiskSourceType = "Upload"
)

// +kubebuilder:validation:XValidation:rule="(self.type == 'HTTP') == has(self.http)",message="http is for type HTTP, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ContainerImage') == has(self.containerImage)",message="containerImage is for type ContainerImage, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ObjectRef') == has(self.objectRef)",message="objectRef is for type ObjectRef, which needs it"
// +kubebuilder:validation:XValidation:rule="self.type == 'Upload' || !has(self.upload)",message="upload is for type Upload"

// VirtualDiskSource is what a disk is a copy of. What is in it decides what it is: raw,
// qcow2, vmdk or vdi, also packed by gzip, xz or zstd.
type VirtualDiskSource struct {
	// +kubebuilder:validation:Required

	// type is HTTP, ContainerImage, ObjectRef or Upload.
	Type VirtualDiskSourceType `json:"type"`

	// +optional

	// http is a file of a server.
	HTTP *VirtualDiskHTTP `json:"http,omitempty"`

	// +optional

	// containerImage is a container image with a disk.
	ContainerImage *VirtualDiskContainerImage `json:"containerImage,omitempty"`

	// +optional

	// objectRef is another disk, which no pod may use while it is copied, an image, or a
	// snapshot of a disk's volume.
	ObjectRef *VirtualDiskObjectRef `json:"objectRef,omitempty"`

	// +optional

	// upload says what must be uploaded, with vmop-cli disk upload; nothing is needed
	// here.
	Upload *VirtualDiskUpload `json:"upload,omitempty"`
}

// VirtualDiskUpload is what must be uploaded.
type VirtualDiskUpload struct {
	// +optional

	// checksum is that of the file, before it is unpacked. Without it whoever may upload
	// is trusted.
	Checksum *VirtualDiskChecksum `json:"checksum,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="self.kind in ['VirtualDisk', 'VirtualImage', 'ClusterVirtualImage', 'VolumeSnapshot']",message="the kind must be VirtualDisk, VirtualImage, ClusterVirtualImage or VolumeSnapshot"
// +kubebuilder:validation:XValidation:rule="self.kind == 'VolumeSnapshot' || self.name.size() <= 60",message="the name of a disk or image has at most 60 characters"
// +kubebuilder:validation:XValidation:rule="self.kind == 'VolumeSnapshot' || !has(self.format)",message="format is for kind VolumeSnapshot"

// VirtualDiskObjectRef is what a disk is a copy of, in its namespace or of the cluster.
type VirtualDiskObjectRef struct {
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Required

	// kind is what it is: VirtualDisk, VirtualImage, ClusterVirtualImage or
	// VolumeSnapshot, which is a snapshot of a disk's volume (snapshot.storage.k8s.io).
	Kind string `json:"kind"`

	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Required

	// name is its name.
	Name string `json:"name"`

	// +kubebuilder:validation:Enum=raw;qcow2
	// +optional

	// format is what the file in a VolumeSnapshot is, raw (which is the default) or qcow2:
	// what status.format of the disk said of which that was made. A guest can write
	// anything to its disk, so that nobody looks into the file for it.
	Format string `json:"format,omitempty"`
}

// VirtualDiskHTTP is a file of a server.
type VirtualDiskHTTP struct {
	// +kubebuilder:validation:Pattern=`^https?://`
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Required

	// url is where it is: http://… or https://….
	URL string `json:"url"`

	// +optional

	// checksum is that of the file, before it is unpacked. Without it the server is
	// trusted.
	Checksum *VirtualDiskChecksum `json:"checksum,omitempty"`

	// +kubebuilder:validation:MaxLength=65536
	// +optional

	// caBundle are certificates (PEM) that the server may be trusted by, beside those
	// of the runner's image.
	CABundle string `json:"caBundle,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="has(self.sha256) != has(self.sha512)",message="give one of sha256 and sha512"

// VirtualDiskChecksum is a checksum.
type VirtualDiskChecksum struct {
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{64}$`
	// +kubebuilder:validation:MaxLength=64
	// +optional

	// sha256 are the 64 hexadecimal digits of an SHA-256.
	SHA256 string `json:"sha256,omitempty"`

	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{128}$`
	// +kubebuilder:validation:MaxLength=128
	// +optional

	// sha512 are the 128 hexadecimal digits of an SHA-512.
	SHA512 string `json:"sha512,omitempty"`
}

// VirtualDiskContainerImage is a container image with a disk.
type VirtualDiskContainerImage struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Required

	// image is its name, such as quay.io/containerdisks/fedora:43; with @sha256:… it is
	// that very image.
	Image string `json:"image"`

	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// path is that of the disk in the image; without it it is the only file in /disk.
	Path string `json:"path,omitempty"`

	// +optional

	// imagePullSecret is a Secret of the disk's namespace and the type
	// kubernetes.io/dockerconfigjson with the credentials for the registry.
	ImagePullSecret *VirtualDiskPullSecret `json:"imagePullSecret,omitempty"`

	// +kubebuilder:validation:MaxLength=65536
	// +optional

	// caBundle are certificates (PEM) that the registry may be trusted by, beside those
	// of the runner's image.
	CABundle string `json:"caBundle,omitempty"`
}

// VirtualDiskPullSecret names a Secret.
type VirtualDiskPullSecret struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Required

	// name is that of the Secret.
	Name string `json:"name"`
}

// +kubebuilder:validation:Enum=Pending;Provisioning;WaitForFirstConsumer;WaitForUserUpload;Ready;Resizing;Failed;Terminating

// DiskPhase sums up what has become of a disk.
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
	// DiskWaitForUserUpload: somebody has to upload what it is to be.
	DiskWaitForUserUpload DiskPhase = "WaitForUserUpload"
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
	// +optional

	// phase sums it up in one word.
	Phase DiskPhase `json:"phase,omitempty"`

	// +optional

	// observedGeneration is the generation of the specification that it is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional

	// capacity is what the volume has, as a quantity of bytes.
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// +kubebuilder:validation:MaxLength=16
	// +optional

	// format is that of the file that the disk is: raw or qcow2. It is empty for a
	// block device.
	Format string `json:"format,omitempty"`

	// +optional

	// target is where the disk is.
	Target *VirtualDiskTarget `json:"target,omitempty"`

	// +optional

	// import is what is known of the attempts to fill the disk.
	Import *VirtualDiskImport `json:"import,omitempty"`

	// +kubebuilder:validation:MaxLength=16
	// +optional

	// progress is how much of the disk is made, in percent, such as 42%; it is missing
	// while nobody knows.
	Progress string `json:"progress,omitempty"`

	// +optional

	// download is what has become of the last request for a download.
	Download *VirtualDiskDownload `json:"download,omitempty"`

	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional

	// attachedToVirtualMachines are the machines that have the disk in their
	// specification, or in their pod.
	AttachedToVirtualMachines []AttachedVirtualMachine `json:"attachedToVirtualMachines,omitempty"`

	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional

	// conditions are Ready, Resized and InUse.
	Conditions []Condition `json:"conditions,omitempty"`
}

// +kubebuilder:validation:Enum=Pending;Ready;Refused;Ended

// DownloadPhase sums up what has become of a request for a download.
type DownloadPhase string

// The phases. Refused and Ended are the last ones: nothing comes of that request any more.
const (
	// DownloadPending: a pod is being made that gives it.
	DownloadPending DownloadPhase = "Pending"
	// DownloadReady: the pod waits for who downloads.
	DownloadReady DownloadPhase = "Ready"
	// DownloadRefused: nobody is given it now.
	DownloadRefused DownloadPhase = "Refused"
	// DownloadEnded: the pod has ended.
	DownloadEnded DownloadPhase = "Ended"
)

// Final reports whether nothing comes of the request any more.
func (p DownloadPhase) Final() bool { return p == DownloadRefused || p == DownloadEnded }

// VirtualDiskDownload is what has become of a request for a download.
type VirtualDiskDownload struct {
	// +kubebuilder:validation:MaxLength=64
	// +optional

	// request is the one that it is about.
	Request string `json:"request,omitempty"`

	// +optional

	// phase is Pending, Ready, Refused or Ended.
	Phase DownloadPhase `json:"phase,omitempty"`

	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// message says why, and what to do next.
	Message string `json:"message,omitempty"`

	// +optional

	// podUID is that of the pod that gives it, or gave it.
	PodUID types.UID `json:"podUID,omitempty"`
}

// VirtualDiskTarget is where a disk is.
type VirtualDiskTarget struct {
	// +kubebuilder:validation:MaxLength=253
	// +optional

	// persistentVolumeClaim is the name of its volume claim.
	PersistentVolumeClaim string `json:"persistentVolumeClaim,omitempty"`

	// +kubebuilder:validation:MaxLength=63
	// +optional

	// namespace is that of the claim, for an image of the cluster: all others have it in
	// their own.
	Namespace string `json:"namespace,omitempty"`

	// +optional

	// persistentVolumeClaimUID is that claim, and no other of its name.
	PersistentVolumeClaimUID types.UID `json:"persistentVolumeClaimUID,omitempty"`
}

// VirtualDiskImport is what is known of the attempts to fill a disk.
type VirtualDiskImport struct {
	// +optional

	// attempts is how often it has failed.
	Attempts int32 `json:"attempts,omitempty"`

	// +optional

	// podUID is the pod that was counted last.
	PodUID types.UID `json:"podUID,omitempty"`

	// +optional

	// failedAt is when that was.
	FailedAt *metav1.Time `json:"failedAt,omitempty"`

	// +kubebuilder:validation:MaxLength=64
	// +optional

	// request is the one for an upload that was answered last.
	Request string `json:"request,omitempty"`

	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// message is what it said.
	Message string `json:"message,omitempty"`

	// +optional

	// final says that another attempt would end likewise.
	Final bool `json:"final,omitempty"`

	// +optional

	// cloneRefused is the UID of a volume claim that was to be a clone, and got no volume
	// in time: what is made in its place is a copy.
	CloneRefused types.UID `json:"cloneRefused,omitempty"`

	// +kubebuilder:validation:MaxLength=16
	// +optional

	// step is what the attempt that runs does: downloading, uploading, verifying, unpacking,
	// copying or converting.
	Step string `json:"step,omitempty"`

	// +optional

	// doneBytes are those that the step has read.
	DoneBytes int64 `json:"doneBytes,omitempty"`

	// +optional

	// totalBytes are all that the step reads; it is missing if nobody knows.
	TotalBytes int64 `json:"totalBytes,omitempty"`
}

// AttachedVirtualMachine is a machine that has a disk.
type AttachedVirtualMachine struct {
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Required

	// name is that of the machine.
	Name string `json:"name"`
}
