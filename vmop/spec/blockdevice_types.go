package spec

import "k8s.io/apimachinery/pkg/api/resource"

// +kubebuilder:validation:XValidation:rule="self.kind in ['VirtualDisk', 'VirtualImage']",message="the kind must be VirtualDisk or VirtualImage: of a ClusterVirtualImage make a VirtualImage or a VirtualDisk, and name that"

// BlockDeviceRef is a disk of a machine that exists by itself, or an image, which is
// only read: one of a CD is in a drive of its own, others are disks. (Added by vmop.)
type BlockDeviceRef struct {
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Required

	// kind is what the disk is: VirtualDisk or VirtualImage.
	Kind string `json:"kind"`

	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=60
	// +kubebuilder:validation:Required

	// name is the disk's, of the machine's namespace.
	Name string `json:"name"`

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +optional

	// bootOrder is the disk's place in the boot order, from 1 on; the lowest is tried
	// first. It is one more than the bootindex of an entry of vm.disks, and none may be
	// there twice. Where one has such a place, references without one are tried after
	// all that have, in the order of the list.
	BootOrder *int32 `json:"bootOrder,omitempty"`
}

// BlockDeviceStatus is what became of a [BlockDeviceRef], or of a disk that is attached to the
// machine while it runs.
type BlockDeviceStatus struct {
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Required

	// kind is that of the reference, or of what is attached: VirtualDisk or
	// PersistentVolumeClaim.
	Kind string `json:"kind"`

	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Required

	// name is that of the reference.
	Name string `json:"name"`

	// +optional

	// bootOrder is that of the reference.
	BootOrder *int32 `json:"bootOrder,omitempty"`

	// +optional

	// size is how large the disk is for the guest that runs, or at its next start; it is
	// missing while nobody knows.
	Size *resource.Quantity `json:"size,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// target is where a guest with Linux finds the disk, by its serial number:
	// /dev/disk/by-id/virtio-SERIAL. Names such as vda depend on what else there is. It is
	// empty for a CD.
	Target string `json:"target,omitempty"`

	// +optional

	// attached says that the machine runs and has the disk.
	Attached bool `json:"attached,omitempty"`

	// +optional

	// hotplugged says that the disk came while the machine ran, by an attachment; it is
	// there from the next start on, too, for as long as the attachment is.
	Hotplugged bool `json:"hotplugged,omitempty"`

	// +kubebuilder:validation:MaxLength=253
	// +optional

	// virtualMachineBlockDeviceAttachmentName is the attachment that the disk has come by.
	VirtualMachineBlockDeviceAttachmentName string `json:"virtualMachineBlockDeviceAttachmentName,omitempty"`
}
