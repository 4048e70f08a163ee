package spec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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

// servers goes over the servers of a display: none for nil. A protocol is a field above,
// its line here, and a type with the methods of [displayServer].
func (d *Display) servers(yield func(displayServer) bool) {
	if d == nil {
		return
	}
	_ = (d.Spice == nil || yield(d.Spice)) &&
		(d.VNC == nil || yield(d.VNC))
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

// displayServer is what the part of a manifest that is about one protocol tells those
// who ask about all of them. What is known without a manifest is in the table of
// package limits.
type displayServer interface {
	// protocol is the name in that table.
	protocol() string
	// port is the field of a port, by its place in the table.
	port(i int) **int32
	// onSocket reports whether the server is on a UNIX socket instead of ports.
	onSocket() bool
	// makesPassword is the field that asks for a secret, which is true by default.
	makesPassword() **bool
	// admitsWithoutPassword is DisplayServer.Openable.
	admitsWithoutPassword() bool
	// defaulted are the fields whose default the definition has.
	defaulted() []string
	// setDefaults sets those that only this protocol has, and validate checks them.
	setDefaults()
	validate(path spot) field.ErrorList
}
