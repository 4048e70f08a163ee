package spec

// USBDevice is a USB device of the host, by the identifiers of its vendor and product.
// Of several that have them the guest gets one.
type USBDevice struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^[0-9A-Fa-f]{4}$`

	// vendor is the first half of what lsusb prints as ID, in quotes: "0951".
	Vendor string `json:"vendor"`

	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^[0-9A-Fa-f]{4}$`

	// product is the second half: "1666".
	Product string `json:"product"`
}
