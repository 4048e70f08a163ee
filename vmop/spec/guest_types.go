package spec

// Versions are those of the programs that run a machine.
type Versions struct {
	// qemu is QEMU's version.
	// +optional
	QEMU string `json:"qemu,omitempty"`
}

// Interface is a network interface as the guest sees it.
type Interface struct {
	// name is the guest's name of it, such as eth0.
	// +kubebuilder:validation:Required
	Name string `json:"name"`
	// mac is its hardware address.
	// +optional
	MAC string `json:"mac,omitempty"`
	// ipAddresses are its addresses, with the lengths of their networks'
	// prefixes.
	// +listType=atomic
	// +optional
	IPAddresses []string `json:"ipAddresses,omitempty"`
}
