package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=virtualmachineblockdeviceattachments,singular=virtualmachineblockdeviceattachment,shortName=vmbda;vmbdas,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 60",message="the name of an attachment has at most 60 characters"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.blockDeviceRef.kind`
// +kubebuilder:printcolumn:name="BlockDevice",type=string,JSONPath=`.spec.blockDeviceRef.name`
// +kubebuilder:printcolumn:name="VirtualMachine",type=string,JSONPath=`.spec.virtualMachineName`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Attached")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Attached")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// VirtualMachineBlockDeviceAttachment gives a machine a disk while it runs, for as long
// as the object is there. The names are Deckhouse Virtualization's. (Added by vmop.)
type VirtualMachineBlockDeviceAttachment struct {
	metav1.TypeMeta `json:",inline"`

	// +optional

	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an attachment cannot be changed; delete it and create another one"
	// +kubebuilder:validation:Required

	// spec says which disk is attached to which machine. It cannot be changed.
	Spec VirtualMachineBlockDeviceAttachmentSpec `json:"spec"`

	// +optional

	// status says what has become of it, as the operator has seen it.
	Status VirtualMachineBlockDeviceAttachmentStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VirtualMachineBlockDeviceAttachmentList is a list of attachments.
type VirtualMachineBlockDeviceAttachmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	// Items are the attachments.
	Items []VirtualMachineBlockDeviceAttachment `json:"items"`
}

// VirtualMachineBlockDeviceAttachmentSpec is which disk is attached to which machine.
type VirtualMachineBlockDeviceAttachmentSpec struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Required

	// virtualMachineName is the machine, of the same namespace.
	VirtualMachineName string `json:"virtualMachineName"`

	// +kubebuilder:validation:Required

	// blockDeviceRef is the disk, of the same namespace.
	BlockDeviceRef AttachedBlockDevice `json:"blockDeviceRef"`
}

// AttachedBlockDevice names what is attached.
type AttachedBlockDevice struct {
	// +kubebuilder:validation:Required

	// kind is VirtualDisk or PersistentVolumeClaim.
	Kind AttachedBlockDeviceKind `json:"kind"`

	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Required

	// name is that of the disk or of the volume claim.
	Name string `json:"name"`
}

// +kubebuilder:validation:Enum=VirtualDisk;PersistentVolumeClaim

// AttachedBlockDeviceKind is the kind of what is attached.
type AttachedBlockDeviceKind string

// The kinds of what is attached.
const (
	// AttachedDisk is a [VirtualDisk].
	AttachedDisk AttachedBlockDeviceKind = "VirtualDisk"
	// AttachedClaim is a volume claim: a block device, or a volume with a file system that
	// has the disk in its file disk.img.
	AttachedClaim AttachedBlockDeviceKind = "PersistentVolumeClaim"
)

// +kubebuilder:validation:Enum=Pending;InProgress;Attached;Failed;Terminating

// AttachmentPhase sums up what has become of an attachment.
type AttachmentPhase string

// The phases of attachments.
const (
	// AttachmentPending: the disk, the machine or a place in it is waited for.
	AttachmentPending AttachmentPhase = "Pending"
	// AttachmentInProgress: it is being attached.
	AttachmentInProgress AttachmentPhase = "InProgress"
	// AttachmentAttached: the guest has it.
	AttachmentAttached AttachmentPhase = "Attached"
	// AttachmentFailed: nothing will come of it without somebody's help.
	AttachmentFailed AttachmentPhase = "Failed"
	// AttachmentTerminating: it is being deleted, and the guest asked to release the disk.
	AttachmentTerminating AttachmentPhase = "Terminating"
)

// VirtualMachineBlockDeviceAttachmentStatus is what has become of an attachment.
type VirtualMachineBlockDeviceAttachmentStatus struct {
	// +optional

	// phase sums it up in one word.
	Phase AttachmentPhase `json:"phase,omitempty"`

	// +optional

	// observedGeneration is the generation of the specification that it is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// virtualMachineName is the machine whose guest has the disk.
	VirtualMachineName string `json:"virtualMachineName,omitempty"`

	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=6
	// +optional

	// place is at which of the machine's places for such disks its guest has had it, from
	// 1 on: it gets it there again.
	Place int32 `json:"place,omitempty"`

	// +optional

	// connection is what the machine's runner is told. It is missing while the machine
	// has nothing of the disk.
	Connection *AttachmentConnection `json:"connection,omitempty"`

	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional

	// conditions are BlockDeviceReady, VirtualMachineReady,
	// DiskAttachmentCapacityAvailable and Attached, and Terminating while it is deleted.
	Conditions []Condition `json:"conditions,omitempty"`
}

// AttachmentConnection is how one run of a machine gets at a disk.
type AttachmentConnection struct {
	// +optional

	// podUID is the machine's pod: it is about no other run.
	PodUID types.UID `json:"podUID,omitempty"`

	// +kubebuilder:validation:MaxLength=64
	// +optional

	// key is the fingerprint of the key of that run: nobody else is served.
	Key string `json:"key,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// address is that of the pod that exports the disk, HOST:PORT.
	Address string `json:"address,omitempty"`

	// +kubebuilder:validation:MaxLength=64
	// +optional

	// fingerprint is that of the key of that pod.
	Fingerprint string `json:"fingerprint,omitempty"`

	// +optional

	// direct says that the machine's pod itself has the volume, since it was made, and
	// until it ends.
	Direct bool `json:"direct,omitempty"`

	// +optional

	// detach says that the guest shall release the disk.
	Detach bool `json:"detach,omitempty"`
}
