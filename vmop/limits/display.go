package limits

import "slices"

// DisplayProtocol is a protocol of a machine's graphics output, with the properties that the
// manifest, the runner's configuration and QEMU share.
type DisplayProtocol struct {
	// Name is its key in manifests and configurations, and its name in QMP's set_password.
	Name string
	// Title is its name for display.
	Title string
	// Ports are the TCP ports that it can listen on.
	Ports []DisplayPort
	// UnixSocket is true if a manifest can have it on a UNIX socket, by the field unixSocket.
	UnixSocket bool
	// PasswordBytes is the number of bytes of a password that it compares; 0 means all.
	PasswordBytes int
}

// DisplayPort is one of the TCP ports of a [DisplayProtocol].
type DisplayPort struct {
	// Name is the name of the port in pods and services.
	Name string
	// Field is its key below that of the protocol.
	Field string
	// Default is the port if neither a port nor a UNIX socket is given; 0 for none.
	Default int32
	// Min is the lowest that QEMU accepts.
	Min int32
}

// displayProtocols are in the order of all lists of displays.
var displayProtocols = []DisplayProtocol{
	{Name: "spice", Title: "SPICE", Ports: []DisplayPort{{Name: "spice", Field: "port", Default: SPICEPort, Min: 1}}},
	{
		Name: "vnc", Title: "VNC",
		Ports:         []DisplayPort{{Name: "vnc", Field: "port", Default: VNCPort, Min: MinVNCPort}, {Name: "vnc-websocket", Field: "websocket", Min: 1}},
		UnixSocket:    true,
		PasswordBytes: 8, // RFC 6143, section 7.2.2
	},
}

// DisplayProtocols lists the protocols. The caller must not change them.
func DisplayProtocols() []DisplayProtocol { return slices.Clip(displayProtocols) }

// Display returns the protocol of a name; the zero value for an unknown one.
func Display(name string) DisplayProtocol {
	for _, p := range displayProtocols {
		if p.Name == name {
			return p
		}
	}
	return DisplayProtocol{}
}

// Check checks the number of a port.
func (p DisplayPort) Check(n int64) error { return between(n, int64(p.Min), 65535) }
