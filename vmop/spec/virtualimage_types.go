package spec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=virtualimages,singular=virtualimage,shortName=vi;vis,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 60",message="the name of an image has at most 60 characters"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Format",type=string,JSONPath=`.status.format`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="Stored",type=string,JSONPath=`.status.storedSize`
// +kubebuilder:printcolumn:name="Claim",type=string,priority=1,JSONPath=`.status.target.persistentVolumeClaim`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// VirtualImage is an image that disks of its namespace are made of: a volume claim that
// the operator makes and fills once, and that nobody writes to any more. The names are
// Deckhouse Virtualization's. (Added by vmop.)
type VirtualImage struct {
	metav1.TypeMeta `json:",inline"`

	// +optional

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an image cannot be changed; make another one"
	// +kubebuilder:validation:Required

	// spec says what the image is. It cannot be changed.
	Spec VirtualImageSpec `json:"spec"`

	// +optional

	// status says what has become of it, as the operator has seen it.
	Status VirtualImageStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VirtualImageList is a list of images.
type VirtualImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	// Items are the images.
	Items []VirtualImage `json:"items"`
}

// +kubebuilder:validation:XValidation:rule="!has(self.dataSource.objectRef) || self.dataSource.objectRef.kind != 'VolumeSnapshot'",message="no image is made of a VolumeSnapshot: make a VirtualDisk of it, and the image of that"

// VirtualImageSpec is what an image is.
type VirtualImageSpec struct {
	// +kubebuilder:validation:Required

	// persistentVolumeClaim is what the image's volume claim is made with.
	PersistentVolumeClaim VirtualImageClaim `json:"persistentVolumeClaim"`

	// +kubebuilder:validation:Required

	// dataSource is where the image comes from. It is kept as what it is: raw or qcow2
	// or the image of a CD, unpacked.
	DataSource VirtualDiskSource `json:"dataSource"`
}

// VirtualImageClaim is what an image's volume claim is made with.
type VirtualImageClaim struct {
	// +kubebuilder:validation:MaxLength=253
	// +optional

	// storageClassName is the storage class; an empty string asks for a volume without
	// one, no value for the cluster's default class.
	StorageClassName *string `json:"storageClassName,omitempty"`

	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",message="must be a quantity of bytes greater than 0, such as 20Gi"
	// +kubebuilder:validation:Required

	// size is that of the volume, as a quantity of bytes. An image that takes more,
	// unpacked, is refused; the disk in it may be larger than what it takes.
	Size resource.Quantity `json:"size"`

	// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteMany
	// +optional

	// accessMode is ReadWriteOnce (the default: all that use the image at one time are
	// on one node) or ReadWriteMany, where the storage class has that. Nobody writes to
	// it either way, but for the pod that fills it.
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`
}

// +kubebuilder:validation:Enum=Pending;Provisioning;WaitForUserUpload;Ready;Failed;Terminating

// ImagePhase sums up what has become of an image.
type ImagePhase string

// The phases of images.
const (
	// ImagePending: its volume claim cannot be made yet, or what it is a copy of is not
	// there.
	ImagePending ImagePhase = "Pending"
	// ImageProvisioning: it is being made.
	ImageProvisioning ImagePhase = "Provisioning"
	// ImageWaitForUserUpload: somebody has to upload it.
	ImageWaitForUserUpload ImagePhase = "WaitForUserUpload"
	// ImageReady: disks can be made of it.
	ImageReady ImagePhase = "Ready"
	// ImageFailed: nothing will come of it without somebody's help.
	ImageFailed ImagePhase = "Failed"
	// ImageTerminating: it is being deleted.
	ImageTerminating ImagePhase = "Terminating"
)

// VirtualImageStatus is what has become of an image.
type VirtualImageStatus struct {
	// +optional

	// phase sums it up in one word.
	Phase ImagePhase `json:"phase,omitempty"`

	// +optional

	// observedGeneration is the generation of the specification that it is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +kubebuilder:validation:MaxLength=16
	// +optional

	// format is what it is: raw, qcow2, or iso for the image of a CD.
	Format string `json:"format,omitempty"`

	// +optional

	// size is how large it is for a guest, as a quantity of bytes: a disk that is made
	// of it has at least as much.
	Size *resource.Quantity `json:"size,omitempty"`

	// +optional

	// storedSize is what it takes of the volume, as a quantity of bytes.
	StoredSize *resource.Quantity `json:"storedSize,omitempty"`

	// +kubebuilder:validation:MaxLength=64
	// +optional

	// sha256 is the digest of the file, in hexadecimal digits, of an image of the cluster:
	// what is made of it elsewhere is compared with that.
	SHA256 string `json:"sha256,omitempty"`

	// +optional

	// target is where the image is.
	Target *VirtualDiskTarget `json:"target,omitempty"`

	// +optional

	// import is what is known of the attempts to make the image.
	Import *VirtualDiskImport `json:"import,omitempty"`

	// +kubebuilder:validation:MaxLength=16
	// +optional

	// progress is how much of the image is made, in percent, such as 42%; it is missing
	// while nobody knows.
	Progress string `json:"progress,omitempty"`

	// +optional

	// download is what has become of the last request for a download. Images of the cluster
	// have none.
	Download *VirtualDiskDownload `json:"download,omitempty"`

	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional

	// conditions are Ready and InUse.
	Conditions []Condition `json:"conditions,omitempty"`
}
