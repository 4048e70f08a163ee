package spec

// Display is the machine's graphics adapter and how it is reached.
type Display struct {
	// outputs is the number of monitors.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +optional
	Outputs *int32 `json:"outputs,omitempty"`
	// loggedInUser is the user whom the agent in the guest logs in.
	// +optional
	LoggedInUser string `json:"loggedInUser,omitempty"`
	// spice makes the display reachable by SPICE. A display without it is not
	// reachable.
	// +optional
	Spice *Spice `json:"spice,omitempty"`
}

// Spice configures the SPICE server of the machine.
type Spice struct {
	// port is the port of the SPICE server.
	// +kubebuilder:default=5900
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port *int32 `json:"port,omitempty"`
	// server is the host name or address that viewers connect to, if it is
	// not the pod's.
	// +optional
	Server string `json:"server,omitempty"`
	// generateSecret makes the operator create a secret with a display
	// password if there is none.
	// +kubebuilder:default=true
	// +optional
	GenerateSecret *bool `json:"generateSecret,omitempty"`
	// proxyUrl is the URL of a proxy that viewers go through.
	// +optional
	ProxyURL string `json:"proxyUrl,omitempty"`
	// streamingVideo says when the server streams parts of the screen as
	// video: off, filter or all.
	// +optional
	StreamingVideo string `json:"streamingVideo,omitempty"`
	// usbRedirects is the number of USB devices that a viewer can hand over.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=14
	// +optional
	UsbRedirects *int32 `json:"usbRedirects,omitempty"`
}
