package spec

// Versions are those of the programs that run a machine.
type Versions struct {
	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// qemu is QEMU's version.
	QEMU string `json:"qemu,omitempty"`
}

// Interface is a network interface as the guest sees it.
type Interface struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096

	// name is the guest's name of it, such as eth0.
	Name string `json:"name"`

	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// mac is its hardware address.
	MAC string `json:"mac,omitempty"`

	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional

	// ipAddresses are its addresses, with the lengths of their networks'
	// prefixes.
	IPAddresses []string `json:"ipAddresses,omitempty"`
}
