package qemucmd

// Display describes how the graphics output is reached.
type Display struct {
	SPICE *SPICE `json:"spice,omitempty"`
	VNC   *VNC   `json:"vnc,omitempty"`
	// TLSDir is a directory with server-cert.pem, server-key.pem and ca-cert.pem, with which the
	// TCP ports are encrypted and refuse plain connections; "" for none.
	TLSDir string `json:"tlsDir,omitempty"`
	// TLSWithoutAuthority is true if ca-cert.pem was not provided and holds certificates of no
	// authority: QEMU needs the file to start, and uses it only to verify clients' certificates.
	TLSWithoutAuthority bool `json:"tlsWithoutAuthority,omitempty"`
}

// SPICE is a SPICE server: on a TCP port, or on a UNIX socket if Socket is set.
type SPICE struct {
	// Address is the address to listen on; empty means all.
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	Socket  string `json:"socket,omitempty"`
	// Ticketing demands the password that is set over QMP. It cannot be changed while QEMU runs.
	Ticketing bool `json:"ticketing,omitempty"`
	// StreamingVideo is QEMU's streaming-video: off, all or filter; empty is QEMU's default.
	StreamingVideo string `json:"streamingVideo,omitempty"`
	// USBRedirects is the number of USB redirection channels, at most 14.
	USBRedirects int `json:"usbRedirects,omitempty"`
}

// VNC is a VNC server on a TCP port, or on a UNIX socket if Socket is set, and on a second TCP port
// for WebSockets if Websocket is set. Without a password it must listen on a loopback address only.
type VNC struct {
	// Address is the address that both ports listen on; empty means all.
	Address string `json:"address,omitempty"`
	// Port is at least 5900: QEMU is passed the number of a display.
	Port      int    `json:"port,omitempty"`
	Socket    string `json:"socket,omitempty"`
	Websocket int    `json:"websocket,omitempty"`
	// Password demands the password that is set over QMP; no client is admitted before it is set.
	// It cannot be changed while QEMU runs.
	Password bool `json:"password,omitempty"`
}

// servers iterates over the servers of a display, which may be nil. A protocol is a field above,
// its line here, a type that implements [displayServer], and a row of [kinds].
func (d *Display) servers(yield func(displayServer) bool) {
	if d == nil {
		return
	}
	_ = (d.SPICE == nil || yield(d.SPICE)) &&
		(d.VNC == nil || yield(d.VNC))
}

type displayServer interface {
	protocol() DisplayProtocol
	socket() string
	needsCertificate() bool
	// overhead is the memory that it needs in addition to what every server needs.
	overhead() int64
}
