package runnerconfig

// Display configures the graphics output and its servers.
type Display struct {
	// Outputs is the number of monitors; 0 means 1.
	Outputs int `json:"outputs,omitempty"`
	// LoggedInUser is the user that the VMOP agent logs in.
	LoggedInUser string `json:"loggedInUser,omitempty"`
	SPICE        *SPICE `json:"spice,omitempty"`
	// VNC is a key that VM-Operator's runner ignores.
	VNC *VNC `json:"vnc,omitempty"`
	// TLS encrypts connections to TCP ports, if it is not nil.
	TLS *DisplayTLS `json:"tls,omitempty"`
}

// DisplayTLS is the certificate of the display.
type DisplayTLS struct {
	// Dir is a directory with the files server-cert.pem and server-key.pem, and ca-cert.pem if the
	// authority is known.
	Dir string `json:"dir"`
}

// SPICE configures the SPICE server.
type SPICE struct {
	// Port is a TCP port; nil means 5900 unless Socket is set.
	Port *int `json:"port,omitempty"`
	// Address is the address to listen on. Empty means all with a display
	// password or with Open, and the loopback interface without.
	Address string `json:"address,omitempty"`
	// Open admits any client if there is no display password, as VM-Operator's runner does.
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

// slots needs a line for each protocol, which also needs a field above and a type with the methods
// of [displayServer].
func (d *Display) slots(yield func(displaySlot) bool) {
	_ = yield(slotAt(&d.SPICE)) &&
		yield(slotAt(&d.VNC))
}

func (d *Display) servers(yield func(displayServer) bool) {
	if d == nil {
		return
	}
	for at := range d.slots {
		if s, has := at.server(); has && !yield(s) {
			return
		}
	}
}
