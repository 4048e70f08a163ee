package spec

// Display is the machine's graphics adapter and how it is reached.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spice) || !has(self.vnc) || self.vnc.unixSocket || self.spice.port != (has(self.vnc.port) ? self.vnc.port : 5901)",message="spice.port and vnc.port must not be the same"
// +kubebuilder:validation:XValidation:rule="!has(self.spice) || !has(self.vnc) || !has(self.vnc.websocket) || self.spice.port != self.vnc.websocket",message="spice.port and vnc.websocket must not be the same"
type Display struct {
	// outputs is the number of monitors.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +optional
	Outputs *int32 `json:"outputs,omitempty"`
	// loggedInUser is the user whom the agent in the guest logs in.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	LoggedInUser string `json:"loggedInUser,omitempty"`
	// spice makes the display reachable by SPICE. A display with neither spice
	// nor vnc is not reachable.
	// +optional
	Spice *Spice `json:"spice,omitempty"`
	// vnc makes the display reachable by VNC, beside SPICE or instead of it.
	// (Added by vmop.)
	// +optional
	VNC *VNC `json:"vnc,omitempty"`
	// tls encrypts what goes over the ports of spice and vnc: they then take
	// nothing else. A server on a UNIX socket has no need for it. (Added by vmop.)
	// +optional
	TLS *DisplayTLS `json:"tls,omitempty"`
}

// DisplayTLS says with which certificate a display identifies itself: that of a Secret,
// or one that the operator makes.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretName) != self.generateSecret",message="either secretName or generateSecret must be given"
type DisplayTLS struct {
	// secretName is the name of a Secret of the machine's namespace with the keys
	// tls.crt, tls.key and, unless viewers know the authority, ca.crt, as
	// cert-manager makes them. The machine waits for it. A certificate that is
	// renewed counts from the next start. Viewers compare the name of the server,
	// or the subject of the certificate if it has a common name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// generateSecret makes the operator create a certificate and an authority for it
	// alone, in a Secret that goes with the machine. It is good for a year for the
	// machine's names in the cluster, spice.server, and localhost for tunnels, and
	// replaced for the next start when a third of that is left.
	// +kubebuilder:default=false
	// +optional
	GenerateSecret bool `json:"generateSecret,omitempty"`
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
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Server string `json:"server,omitempty"`
	// generateSecret makes the operator create a secret with a display
	// password if there is none.
	// +kubebuilder:default=true
	// +optional
	GenerateSecret *bool `json:"generateSecret,omitempty"`
	// proxyUrl is the URL of a proxy that viewers go through.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ProxyURL string `json:"proxyUrl,omitempty"`
	// streamingVideo says when the server streams parts of the screen as
	// video: off, filter or all.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StreamingVideo string `json:"streamingVideo,omitempty"`
	// usbRedirects is the number of USB devices that a viewer can hand over.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=14
	// +optional
	UsbRedirects *int32 `json:"usbRedirects,omitempty"`
}

// VNC configures the VNC server of the machine. It has the password of the
// display secret, as SPICE has, of which the VNC protocol compares only the
// first eight bytes (RFC 6143, section 7.2.2). Without a password it is reached
// on the loopback interface of its pod or host only.
//
// +kubebuilder:validation:XValidation:rule="!has(self.websocket) || self.websocket != (has(self.port) ? self.port : 5901)",message="port and websocket must not be the same"
// +kubebuilder:validation:XValidation:rule="!self.unixSocket || (!has(self.port) && !has(self.websocket))",message="a server on a UNIX socket has neither port nor websocket"
type VNC struct {
	// port is the port of the VNC server. QEMU counts VNC's displays from port
	// 5900 on and takes none below it. It is 5901 by default, unless unixSocket
	// is true.
	// +kubebuilder:validation:Minimum=5900
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port *int32 `json:"port,omitempty"`
	// websocket is a second port, for viewers that run in a browser. Without it
	// there is none.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Websocket *int32 `json:"websocket,omitempty"`
	// unixSocket puts the server on a UNIX socket in the runner's runtime
	// directory, in place of a port: in a cluster only who may execute programs
	// in the machine's pod gets there, by "kubectl exec -i POD -- vmop-runner
	// -vnc". It excludes port and websocket; QEMU serves WebSockets on ports only.
	// On one host without a cluster, a server without port is on such a socket
	// anyway.
	// +kubebuilder:default=false
	// +optional
	UnixSocket bool `json:"unixSocket,omitempty"`
	// generateSecret makes the operator create a secret with a display
	// password if there is none. There is one secret for SPICE and VNC, which
	// is made if either asks for it. Without any the server listens on the
	// loopback interface of the pod, and neither the pod nor the load balancer
	// has a port for it. A secret that is made later counts from the next start.
	// +kubebuilder:default=true
	// +optional
	GenerateSecret *bool `json:"generateSecret,omitempty"`
}
