package spec

import "github.com/vmop/sdk/vmop/limits"

// +kubebuilder:validation:XValidation:rule="has(self.hostPath) != has(self.persistentVolumeClaim)",message="give exactly one of hostPath and persistentVolumeClaim"

// Share is a folder that the guest can mount: one of the host, or a volume of a
// cluster with a file system. With cloud-init, the guest mounts it by itself.
type Share struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=31
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_-]*$`

	// tag is what the guest mounts the folder by (mount -t virtiofs TAG /mnt).
	Tag string `json:"tag"`

	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// hostPath is a folder of the one host that the machine runs on, absolute or
	// relative to the folder of the manifest. Clusters refuse it.
	HostPath string `json:"hostPath,omitempty"`

	// +optional

	// persistentVolumeClaim names a volume claim with a file system, which several
	// machines may share if its access mode lets them. On one host, run --share
	// says which folder it is.
	PersistentVolumeClaim *VolumeClaimReference `json:"persistentVolumeClaim,omitempty"`

	// +optional

	// readOnly has the host refuse all that the guest wants to write.
	ReadOnly bool `json:"readOnly,omitempty"`

	// +kubebuilder:default=virtiofs
	// +optional

	// protocol is virtiofs, or 9p for guests without it and hosts without
	// virtiofsd. Nothing is chosen automatically: the guest has to mount what it is.
	Protocol ShareProtocol `json:"protocol,omitempty"`

	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// mountPoint is where cloud-init has the guest mount the folder; without it
	// that is /mnt/TAG.
	MountPoint string `json:"mountPoint,omitempty"`
}

// +kubebuilder:validation:Enum=virtiofs;"9p"

// ShareProtocol names how a folder reaches the guest.
type ShareProtocol string

// The protocols of shares.
const (
	// ShareVirtioFS is served by virtiofsd.
	ShareVirtioFS ShareProtocol = limits.ShareVirtioFS
	// Share9P is served by QEMU itself.
	Share9P ShareProtocol = limits.Share9P
)

// MountedAt is where cloud-init has the guest mount the folder.
func (s *Share) MountedAt() string {
	if s.MountPoint != "" {
		return s.MountPoint
	}
	return "/mnt/" + s.Tag
}
