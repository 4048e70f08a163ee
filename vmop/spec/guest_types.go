package spec

// Versions are those of the programs that run a machine.
type Versions struct {
	// qemu is QEMU's version.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	QEMU string `json:"qemu,omitempty"`
}

// Interface is a network interface as the guest sees it.
type Interface struct {
	// name is the guest's name of it, such as eth0.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MaxLength=4096
	Name string `json:"name"`
	// mac is its hardware address.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	MAC string `json:"mac,omitempty"`
	// ipAddresses are its addresses, with the lengths of their networks'
	// prefixes.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	IPAddresses []string `json:"ipAddresses,omitempty"`
}
