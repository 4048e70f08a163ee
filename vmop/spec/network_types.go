package spec

// +kubebuilder:validation:XValidation:rule="has(self.tap) != has(self.user)",message="give exactly one of tap and user"

// Network is one network interface: a tap device on a bridge of the host or
// QEMU's user-mode network.
type Network struct {
	// +optional

	// tap connects the interface to a bridge of the host.
	Tap *TapNetwork `json:"tap,omitempty"`

	// +optional

	// user connects the interface to QEMU's user-mode network, which needs no
	// privileges.
	User *UserNetwork `json:"user,omitempty"`
}

// TapNetwork is an interface on a bridge of the host.
type TapNetwork struct {
	// +kubebuilder:default=virtio-net
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*$`
	// +kubebuilder:validation:MaxLength=128
	// +optional

	// device is QEMU's name of the device model.
	Device string `json:"device,omitempty"`

	// +kubebuilder:default=br0
	// +kubebuilder:validation:MaxLength=128
	// +optional

	// bridge is the name of the host's bridge.
	Bridge string `json:"bridge,omitempty"`

	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$`
	// +kubebuilder:validation:MaxLength=32
	// +optional

	// mac is the interface's MAC address, such as 52:54:00:ab:cd:ef. Without
	// it a stable one is derived from the machine's identity.
	MAC string `json:"mac,omitempty"`
}

// UserNetwork is an interface on QEMU's user-mode network.
type UserNetwork struct {
	// +kubebuilder:default=virtio-net
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*$`
	// +kubebuilder:validation:MaxLength=128
	// +optional

	// device is QEMU's name of the device model.
	Device string `json:"device,omitempty"`

	// +kubebuilder:validation:MaxLength=64
	// +optional

	// net is the IPv4 network that the guest sees, such as 10.0.2.0/24.
	Net string `json:"net,omitempty"`

	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$`
	// +kubebuilder:validation:MaxLength=32
	// +optional

	// mac is the interface's MAC address, such as 52:54:00:ab:cd:ef. Without
	// it a stable one is derived from the machine's identity. (Added by vmop.)
	MAC string `json:"mac,omitempty"`

	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional

	// hostForwards make ports of the guest reachable at ports of the host, or
	// of the pod. (Added by vmop.)
	HostForwards []HostForward `json:"hostForwards,omitempty"`
}

// HostForward makes one port of the guest reachable from outside.
type HostForward struct {
	// +kubebuilder:default=tcp
	// +optional

	// protocol is the transport protocol.
	Protocol ForwardProtocol `json:"protocol,omitempty"`

	// +kubebuilder:validation:MaxLength=64
	// +optional

	// hostAddress is the IPv4 address to listen on. Without it, it is every
	// address of a pod, and on a single host the loopback address.
	HostAddress string `json:"hostAddress,omitempty"`

	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535

	// hostPort is the port to listen on.
	HostPort int32 `json:"hostPort"`

	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535

	// guestPort is the guest's port.
	GuestPort int32 `json:"guestPort"`
}

// +kubebuilder:validation:Enum=tcp;udp

// ForwardProtocol is the transport protocol of a [HostForward].
type ForwardProtocol string

// The protocols of a host forward.
const (
	// ForwardTCP forwards TCP connections.
	ForwardTCP ForwardProtocol = "tcp"
	// ForwardUDP forwards UDP datagrams.
	ForwardUDP ForwardProtocol = "udp"
)
