package runnerconfig

import (
	"github.com/vmop/sdk/internal/jsonwriter"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// Display is how the graphics output is reached.
type Display struct {
	// Outputs is the number of monitors; 0 means 1.
	Outputs int `json:"outputs,omitempty"`
	// LoggedInUser is the user that the VMOP agent logs in.
	LoggedInUser string `json:"loggedInUser,omitempty"`
	SPICE        *SPICE `json:"spice,omitempty"`
	// VNC is a key that VM-Operator's runner ignores.
	VNC *VNC `json:"vnc,omitempty"`
	// TLS encrypts what goes over TCP ports, if it is not nil.
	TLS *DisplayTLS `json:"tls,omitempty"`
}

// DisplayTLS is the certificate of the display.
type DisplayTLS struct {
	// Dir is a directory with the files server-cert.pem and server-key.pem, and
	// ca-cert.pem if the authority is known.
	Dir string `json:"dir"`
}

// SPICE configures the SPICE server.
type SPICE struct {
	// Port is a TCP port; nil means 5900 unless Socket is set.
	Port *int `json:"port,omitempty"`
	// Address is the address to listen on. Empty means all with a display
	// password or with Open, and the loopback interface without.
	Address string `json:"address,omitempty"`
	// Open admits any client where there is no display password, as VM-Operator's runner does.
	Open bool `json:"open,omitempty"`
	// Socket replaces the port by a UNIX socket.
	Socket string `json:"socket,omitempty"`
	// StreamingVideo is QEMU's streaming-video. VM-Operator's controller writes
	// the hyphenated key and its runner reads the other; both are read here.
	StreamingVideo       string `json:"streaming-video,omitempty"`
	StreamingVideoLegacy string `json:"streamingVideo,omitempty"`
	// USBRedirects is the number of USB redirection channels; nil means 2.
	USBRedirects *int `json:"usbRedirects,omitempty"`
}

// VNC configures the VNC server.
type VNC struct {
	// Port is a TCP port from 5900 on; nil means 5901 unless Socket is set.
	Port *int `json:"port,omitempty"`
	// Address is the address to listen on. Empty means all with a display
	// password, and the loopback interface without.
	Address string `json:"address,omitempty"`
	// Socket replaces the port by a UNIX socket.
	Socket string `json:"socket,omitempty"`
	// Websocket is the TCP port for viewers in browsers; nil means none. QEMU
	// has no UNIX socket for them.
	Websocket *int `json:"websocket,omitempty"`
}

// servers goes over the servers of a display: none for nil. A protocol is a field above,
// its line here, and a type with the methods of [displayServer].
func (d *Display) servers(yield func(displayServer) bool) {
	if d == nil {
		return
	}
	_ = (d.SPICE == nil || yield(d.SPICE)) &&
		(d.VNC == nil || yield(d.VNC))
}

// displayServer is what the part of a configuration that is about one protocol tells
// those who ask about all of them. What is known without a configuration is in the
// table of package limits.
type displayServer interface {
	write(w *jsonwriter.Writer)
	protocol() qemucmd.DisplayProtocol
	// port is the field of a port, by its place in the table: first the one that a socket
	// replaces.
	port(i int) **int
	// place is what it listens on besides.
	place() (address, socket *string)
	// open is the field that admits any client where there is no password; nil if the
	// protocol has none.
	open() *bool
	// copyInto gives a display a copy of the server in its place.
	copyInto(d *Display)
	// setDefaults sets those that only this protocol has, and validate checks them.
	setDefaults()
	validate(v *validator)
	// machine gives a machine the server, which listens at a place.
	machine(d *qemucmd.Display, at listening, password bool)
}

// listening is where a server listens: at a port, or on a socket.
type listening struct {
	address, socket string
	port            int
}
