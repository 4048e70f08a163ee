package spec

// +kubebuilder:validation:XValidation:rule="!has(self.spice) || !has(self.vnc) || self.vnc.unixSocket || self.spice.port != (has(self.vnc.port) ? self.vnc.port : 5901)",message="spice.port and vnc.port must not be the same"
// +kubebuilder:validation:XValidation:rule="!has(self.spice) || !has(self.vnc) || !has(self.vnc.websocket) || self.spice.port != self.vnc.websocket",message="spice.port and vnc.websocket must not be the same"

// Display is the machine's graphics adapter and how it is reached.
type Display struct {
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +optional

	// outputs is the number of monitors.
	Outputs *int32 `json:"outputs,omitempty"`

	// +kubebuilder:validation:MaxLength=256
	// +optional

	// loggedInUser is the user whom the agent in the guest logs in.
	LoggedInUser string `json:"loggedInUser,omitempty"`

	// +optional

	// spice makes the display reachable by SPICE. A display with neither spice
	// nor vnc is not reachable.
	Spice *Spice `json:"spice,omitempty"`

	// +optional

	// vnc makes the display reachable by VNC, beside SPICE or instead of it.
	// (Added by vmop.)
	VNC *VNC `json:"vnc,omitempty"`

	// +optional

	// tls encrypts what goes over the ports of spice and vnc: they then take
	// nothing else. A server on a UNIX socket has no need for it. (Added by vmop.)
	TLS *DisplayTLS `json:"tls,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="has(self.secretName) != self.generateSecret",message="either secretName or generateSecret must be given"

// DisplayTLS says with which certificate a display identifies itself: that of a Secret,
// or one that the operator makes.
type DisplayTLS struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional

	// secretName is the name of a Secret of the machine's namespace with the keys
	// tls.crt, tls.key and, unless viewers know the authority, ca.crt, as
	// cert-manager makes them. The machine waits for it. A certificate that is
	// renewed counts from the next start. Viewers compare the name of the server,
	// or the subject of the certificate if it has a common name.
	SecretName string `json:"secretName,omitempty"`

	// +kubebuilder:default=false
	// +optional

	// generateSecret makes the operator create a certificate and an authority for it
	// alone, in a Secret that goes with the machine. It is good for a year for the
	// machine's names in the cluster, spice.server, and localhost for tunnels, and
	// replaced for the next start when a third of that is left.
	GenerateSecret bool `json:"generateSecret,omitempty"`
}

// Spice configures the SPICE server of the machine.
type Spice struct {
	// +kubebuilder:default=5900
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional

	// port is the port of the SPICE server.
	Port *int32 `json:"port,omitempty"`

	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// server is the host name or address that viewers connect to, if it is
	// not the pod's.
	Server string `json:"server,omitempty"`

	// +kubebuilder:default=true
	// +optional

	// generateSecret makes the operator create a secret with a display
	// password if there is none.
	GenerateSecret *bool `json:"generateSecret,omitempty"`

	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// proxyUrl is the URL of a proxy that viewers go through.
	ProxyURL string `json:"proxyUrl,omitempty"`

	// +kubebuilder:validation:MaxLength=64
	// +optional

	// streamingVideo says when the server streams parts of the screen as
	// video: off, filter or all.
	StreamingVideo string `json:"streamingVideo,omitempty"`

	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=14
	// +optional

	// usbRedirects is the number of USB devices that a viewer can hand over.
	UsbRedirects *int32 `json:"usbRedirects,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="!has(self.websocket) || self.websocket != (has(self.port) ? self.port : 5901)",message="port and websocket must not be the same"
// +kubebuilder:validation:XValidation:rule="!self.unixSocket || (!has(self.port) && !has(self.websocket))",message="a server on a UNIX socket has neither port nor websocket"

// VNC configures the VNC server of the machine. It has the password of the
// display secret, as SPICE has, of which the VNC protocol compares only the
// first eight bytes (RFC 6143, section 7.2.2). Without a password it is reached
// on the loopback interface of its pod or host only.
type VNC struct {
	// +kubebuilder:validation:Minimum=5900
	// +kubebuilder:validation:Maximum=65535
	// +optional

	// port is the port of the VNC server. QEMU counts VNC's displays from port
	// 5900 on and takes none below it. It is 5901 by default, unless unixSocket
	// is true.
	Port *int32 `json:"port,omitempty"`

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional

	// websocket is a second port, for viewers that run in a browser. Without it
	// there is none.
	Websocket *int32 `json:"websocket,omitempty"`

	// +kubebuilder:default=false
	// +optional

	// unixSocket puts the server on a UNIX socket in the runner's runtime
	// directory, in place of a port: in a cluster only who may execute programs
	// in the machine's pod gets there, by "kubectl exec -i POD -- vmop-runner
	// -vnc". It excludes port and websocket; QEMU serves WebSockets on ports only.
	// On one host without a cluster, a server without port is on such a socket
	// anyway.
	UnixSocket bool `json:"unixSocket,omitempty"`

	// +kubebuilder:default=true
	// +optional

	// generateSecret makes the operator create a secret with a display
	// password if there is none. There is one secret for SPICE and VNC, which
	// is made if either asks for it. Without any the server listens on the
	// loopback interface of the pod, and neither the pod nor the load balancer
	// has a port for it. A secret that is made later counts from the next start.
	GenerateSecret *bool `json:"generateSecret,omitempty"`
}
