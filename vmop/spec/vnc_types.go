package spec

import "k8s.io/apimachinery/pkg/util/validation/field"

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

func (*VNC) protocol() string            { return "vnc" }
func (v *VNC) port(i int) **int32        { return [...]**int32{&v.Port, &v.Websocket}[i] }
func (v *VNC) onSocket() bool            { return v.UnixSocket }
func (v *VNC) makesPassword() **bool     { return &v.GenerateSecret }
func (*VNC) defaulted() []string         { return []string{"unixSocket", "generateSecret"} }
func (*VNC) setDefaults()                {}
func (*VNC) admitsWithoutPassword() bool { return false }

func (*VNC) validate(spot) field.ErrorList { return nil }
