package qemucmd

// Display is how the graphics output is reached.
type Display struct {
	SPICE *SPICE `json:"spice,omitempty"`
	VNC   *VNC   `json:"vnc,omitempty"`
	// TLSDir is a directory with server-cert.pem, server-key.pem and ca-cert.pem,
	// by which the TCP ports are encrypted and take nothing else; "" for none.
	TLSDir string `json:"tlsDir,omitempty"`
	// TLSWithoutAuthority is true if ca-cert.pem was not provided and has certificates which are no
	// authority's: QEMU needs some to start, and uses them only if it asks its clients for theirs.
	TLSWithoutAuthority bool `json:"tlsWithoutAuthority,omitempty"`
}

// SPICE is a SPICE server: on a TCP port, or on a UNIX socket if Socket is set.
type SPICE struct {
	// Address is the address to listen on; empty means all.
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	Socket  string `json:"socket,omitempty"`
	// Ticketing demands the password that is set over QMP. It cannot be changed
	// while QEMU runs.
	Ticketing bool `json:"ticketing,omitempty"`
	// StreamingVideo is QEMU's streaming-video: off, all or filter; empty is
	// QEMU's default.
	StreamingVideo string `json:"streamingVideo,omitempty"`
	// USBRedirects is the number of USB redirection channels, at most 14.
	USBRedirects int `json:"usbRedirects,omitempty"`
}

// VNC is a VNC server: on a TCP port, or on a UNIX socket if Socket is set, and
// on a second TCP port for WebSockets if Websocket is set. Without a password it
// must not listen for other hosts.
type VNC struct {
	// Address is the address to listen on, of the port and of WebSockets; empty
	// means all.
	Address string `json:"address,omitempty"`
	// Port is 5900 or more: QEMU is given the number of a display.
	Port      int    `json:"port,omitempty"`
	Socket    string `json:"socket,omitempty"`
	Websocket int    `json:"websocket,omitempty"`
	// Password demands the password that is set over QMP, and admits no client before. It cannot be
	// changed while QEMU runs.
	Password bool `json:"password,omitempty"`
}

// servers goes over the servers of a display: none for nil. A protocol is a field above,
// its line here, a type with the methods of [displayServer], and a row of [kinds].
func (d *Display) servers(yield func(displayServer) bool) {
	if d == nil {
		return
	}
	_ = (d.SPICE == nil || yield(d.SPICE)) &&
		(d.VNC == nil || yield(d.VNC))
}

// displayServer is what the server of one protocol tells those who ask about all.
type displayServer interface {
	protocol() DisplayProtocol
	// socket is the path of its UNIX socket; "" if it is on a port instead.
	socket() string
	// needsCertificate reports whether QEMU is given the certificate as an object.
	needsCertificate() bool
	// overhead is the memory that it needs beside what every server needs.
	overhead() int64
}
