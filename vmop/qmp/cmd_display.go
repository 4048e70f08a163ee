package qmp

// SetPassword sets the password of a remote display. Setting a VNC password needs a server with
// password=on.
type SetPassword struct {
	Protocol  string `json:"protocol"` // "vnc" or "spice"
	Password  string `json:"password"`
	Connected string `json:"connected,omitempty"` // what happens to clients: "keep" (default), "fail", "disconnect"
	Display   string `json:"display,omitempty"`   // which VNC display, the first if empty
}

// QMP implements Command.
func (SetPassword) QMP() (string, None) { return "set_password", None{} }

// String leaves out the password, so that it does not get into logs.
func (s SetPassword) String() string {
	return "set_password " + s.Protocol + " (password hidden)"
}

// GoString returns the same as String.
func (s SetPassword) GoString() string { return s.String() }

// ExpirePassword sets when the password of a remote display expires. SetPassword does not change
// that.
type ExpirePassword struct {
	Protocol string `json:"protocol"` // "vnc" or "spice"
	// Time is "now", "never", "+SECONDS" from now, or seconds since the epoch.
	Time    string `json:"time"`
	Display string `json:"display,omitempty"` // which VNC display, the first if empty
}

// QMP implements Command.
func (ExpirePassword) QMP() (string, None) { return "expire_password", None{} }

// Screendump writes the content of a screen to a file on QEMU's side.
type Screendump struct {
	Filename string `json:"filename"`
	Device   string `json:"device,omitempty"` // which display device, the first if empty
	Head     int    `json:"head,omitempty"`   // which of its heads; needs Device
	Format   string `json:"format,omitempty"` // "ppm" (default) or "png"
}

// QMP implements Command.
func (Screendump) QMP() (string, None) { return "screendump", None{} }

// QuerySpice queries the SPICE server and its clients.
type QuerySpice struct{}

// QMP implements Command.
func (QuerySpice) QMP() (string, SpiceInfo) { return "query-spice", SpiceInfo{} }

// SpiceInfo is the result of QuerySpice.
type SpiceInfo struct {
	Enabled         bool           `json:"enabled"`
	Migrated        bool           `json:"migrated"` // the last migration took the clients along
	Host            string         `json:"host"`
	Port            int            `json:"port"`
	TLSPort         int            `json:"tls-port"`
	Auth            string         `json:"auth"` // "none" or "spice"
	CompiledVersion string         `json:"compiled-version"`
	MouseMode       string         `json:"mouse-mode"` // "client", "server" or "unknown"
	Channels        []SpiceChannel `json:"channels"`   // of connected clients
}

// SpiceChannel is one channel of a connected SPICE client. Channels of the same client share the
// connection ID.
type SpiceChannel struct {
	Host         string `json:"host"`
	Port         string `json:"port"`
	Family       string `json:"family"` // "ipv4", "ipv6", "unix", ...
	ConnectionID int64  `json:"connection-id"`
	ChannelType  int64  `json:"channel-type"` // 1 is the main channel
	ChannelID    int64  `json:"channel-id"`
	TLS          bool   `json:"tls"`
}

// QueryVNC queries the first VNC server and its clients.
type QueryVNC struct{}

// QMP implements Command.
func (QueryVNC) QMP() (string, VNCInfo) { return "query-vnc", VNCInfo{} }

// VNCInfo is the result of QueryVNC.
type VNCInfo struct {
	Enabled bool        `json:"enabled"`
	Host    string      `json:"host"`
	Family  string      `json:"family"`
	Service string      `json:"service"` // port, or path of a Unix socket
	Auth    string      `json:"auth"`    // "none", "vnc", "vencrypt+..." and others
	Clients []VNCClient `json:"clients"`
}

// VNCClient is a connected VNC client.
type VNCClient struct {
	Host         string `json:"host"`
	Service      string `json:"service"` // port
	Family       string `json:"family"`  // "ipv4", "ipv6", "unix", ...
	Websocket    bool   `json:"websocket"`
	X509DName    string `json:"x509_dname"`    // distinguished name, with TLS
	SASLUsername string `json:"sasl_username"` // with SASL
}

// QueryVNCServers queries all VNC servers and their clients.
type QueryVNCServers struct{}

// QMP implements Command.
func (QueryVNCServers) QMP() (string, []VNCServer) { return "query-vnc-servers", nil }

// VNCServer is one VNC display.
type VNCServer struct {
	ID      string      `json:"id"`
	Auth    string      `json:"auth"`
	Display string      `json:"display"` // id of the display device it shows, if it is bound to one
	Server  []VNCListen `json:"server"`
	Clients []VNCClient `json:"clients"`
}

// VNCListen is an address on which a VNC server listens.
type VNCListen struct {
	Host      string `json:"host"`
	Service   string `json:"service"` // port, or path of a Unix socket
	Family    string `json:"family"`
	Websocket bool   `json:"websocket"`
	Auth      string `json:"auth"`
}
