package spec

// Network is one network interface: a tap device on a bridge of the host or
// QEMU's user-mode network.
//
// +kubebuilder:validation:XValidation:rule="has(self.tap) != has(self.user)",message="give exactly one of tap and user"
type Network struct {
	// tap connects the interface to a bridge of the host.
	// +optional
	Tap *TapNetwork `json:"tap,omitempty"`
	// user connects the interface to QEMU's user-mode network, which needs no
	// privileges.
	// +optional
	User *UserNetwork `json:"user,omitempty"`
}

// TapNetwork is an interface on a bridge of the host.
type TapNetwork struct {
	// device is QEMU's name of the device model.
	// +kubebuilder:default=virtio-net
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*$`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Device string `json:"device,omitempty"`
	// bridge is the name of the host's bridge.
	// +kubebuilder:default=br0
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Bridge string `json:"bridge,omitempty"`
	// mac is the interface's MAC address, such as 52:54:00:ab:cd:ef. Without
	// it a stable one is derived from the machine's identity.
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$`
	// +kubebuilder:validation:MaxLength=32
	// +optional
	MAC string `json:"mac,omitempty"`
}

// UserNetwork is an interface on QEMU's user-mode network.
type UserNetwork struct {
	// device is QEMU's name of the device model.
	// +kubebuilder:default=virtio-net
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*$`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Device string `json:"device,omitempty"`
	// net is the IPv4 network that the guest sees, such as 10.0.2.0/24.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Net string `json:"net,omitempty"`
	// mac is the interface's MAC address, such as 52:54:00:ab:cd:ef. Without
	// it a stable one is derived from the machine's identity. (Added by vmop.)
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$`
	// +kubebuilder:validation:MaxLength=32
	// +optional
	MAC string `json:"mac,omitempty"`
	// hostForwards make ports of the guest reachable at ports of the host, or
	// of the pod. (Added by vmop.)
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	HostForwards []HostForward `json:"hostForwards,omitempty"`
}

// HostForward makes one port of the guest reachable from outside.
type HostForward struct {
	// protocol is the transport protocol.
	// +kubebuilder:default=tcp
	// +optional
	Protocol ForwardProtocol `json:"protocol,omitempty"`
	// hostAddress is the IPv4 address to listen on. Without it, it is every
	// address of a pod, and on a single host the loopback address.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	HostAddress string `json:"hostAddress,omitempty"`
	// hostPort is the port to listen on.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	HostPort int32 `json:"hostPort"`
	// guestPort is the guest's port.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	GuestPort int32 `json:"guestPort"`
}

// ForwardProtocol is the transport protocol of a [HostForward].
//
// +kubebuilder:validation:Enum=tcp;udp
type ForwardProtocol string

// The protocols of a host forward.
const (
	// ForwardTCP forwards TCP connections.
	ForwardTCP ForwardProtocol = "tcp"
	// ForwardUDP forwards UDP datagrams.
	ForwardUDP ForwardProtocol = "udp"
)
