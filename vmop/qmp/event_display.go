package qmp

// SpiceConnectedEvent is emitted when a channel of a SPICE client has connected.
type SpiceConnectedEvent struct {
	Server SpiceAddress `json:"server"`
	Client SpiceAddress `json:"client"`
}

// QMPEvent implements EventData.
func (SpiceConnectedEvent) QMPEvent() string { return "SPICE_CONNECTED" }

// SpiceInitializedEvent is emitted when a channel of a SPICE client has authenticated.
type SpiceInitializedEvent struct {
	Server SpiceServerAddress `json:"server"`
	Client SpiceChannel       `json:"client"`
}

// QMPEvent implements EventData.
func (SpiceInitializedEvent) QMPEvent() string { return "SPICE_INITIALIZED" }

// SpiceDisconnectedEvent is emitted when a channel of a SPICE client has closed.
type SpiceDisconnectedEvent struct {
	Server SpiceAddress `json:"server"`
	Client SpiceAddress `json:"client"`
}

// QMPEvent implements EventData.
func (SpiceDisconnectedEvent) QMPEvent() string { return "SPICE_DISCONNECTED" }

// SpiceAddress is one end of a SPICE connection.
type SpiceAddress struct {
	Host   string `json:"host"`
	Port   string `json:"port"`
	Family string `json:"family"` // "ipv4", "ipv6", "unix", ...
}

// SpiceServerAddress is the server's end of a SPICE connection.
type SpiceServerAddress struct {
	Host   string `json:"host"`
	Port   string `json:"port"`
	Family string `json:"family"`
	Auth   string `json:"auth"` // "none" or "spice"
}

// VNCConnectedEvent is emitted when a VNC client has connected.
type VNCConnectedEvent struct {
	Server VNCListen  `json:"server"`
	Client VNCAddress `json:"client"`
}

// QMPEvent implements EventData.
func (VNCConnectedEvent) QMPEvent() string { return "VNC_CONNECTED" }

// VNCInitializedEvent is emitted when a VNC client has authenticated and is in use.
type VNCInitializedEvent struct {
	Server VNCListen `json:"server"`
	Client VNCClient `json:"client"`
}

// QMPEvent implements EventData.
func (VNCInitializedEvent) QMPEvent() string { return "VNC_INITIALIZED" }

// VNCDisconnectedEvent is emitted when a VNC client has disconnected.
type VNCDisconnectedEvent struct {
	Server VNCListen `json:"server"`
	Client VNCClient `json:"client"`
}

// QMPEvent implements EventData.
func (VNCDisconnectedEvent) QMPEvent() string { return "VNC_DISCONNECTED" }

// VNCAddress is the client's end of a VNC connection.
type VNCAddress struct {
	Host      string `json:"host"`
	Service   string `json:"service"` // port
	Family    string `json:"family"`  // "ipv4", "ipv6", "unix", ...
	Websocket bool   `json:"websocket"`
}
