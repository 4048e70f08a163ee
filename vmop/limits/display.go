package limits

import "slices"

// DisplayProtocol is a way to a machine's graphics output: what is known of it before
// there is a machine, and the same for the manifest, the runner's configuration and
// QEMU.
type DisplayProtocol struct {
	// Name is the key of it in manifests and configurations, and what QEMU calls it in
	// set_password.
	Name string
	// Title is its name for people.
	Title string
	// Ports are those that it can listen on.
	Ports []DisplayPort
	// UnixSocket: a manifest can have it on a UNIX socket, by the field unixSocket.
	UnixSocket bool
	// PasswordBytes is how much of a password it compares; 0 is all.
	PasswordBytes int
}

// DisplayPort is one of the TCP ports of a [DisplayProtocol].
type DisplayPort struct {
	// Name is that of the port of pods and services.
	Name string
	// Field is the key of it below that of the protocol.
	Field string
	// Default is the port of a server that is on none and not on a UNIX socket either;
	// 0 if it then has none.
	Default int32
	// Min is the lowest that QEMU takes.
	Min int32
}

// displayProtocols are in the order in which all lists of displays have them.
var displayProtocols = []DisplayProtocol{
	{Name: "spice", Title: "SPICE", Ports: []DisplayPort{{Name: "spice", Field: "port", Default: SPICEPort, Min: 1}}},
	{
		Name: "vnc", Title: "VNC",
		Ports:         []DisplayPort{{Name: "vnc", Field: "port", Default: VNCPort, Min: MinVNCPort}, {Name: "vnc-websocket", Field: "websocket", Min: 1}},
		UnixSocket:    true,
		PasswordBytes: 8, // RFC 6143, section 7.2.2
	},
}

// DisplayProtocols lists the protocols of displays. The caller must not change them.
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
