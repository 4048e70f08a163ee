package runnerconfig

import "github.com/vmop/sdk/vmop/qemucmd"

// DisplayServer is one of the ways to a machine's display. All that is the same
// for every protocol goes over the list of them ([Display.Servers]).
type DisplayServer struct {
	Protocol qemucmd.DisplayProtocol
	// Ports are the TCP ports that it listens on; none if it is on Socket alone.
	Ports []DisplayPort
	// Socket is the path of its UNIX socket; "" if it has none.
	Socket string
}

// DisplayPort is a port of a [DisplayServer].
type DisplayPort struct {
	// Field is the path of the field that has it, such as "vm.display.vnc.port".
	Field string
	Port  int
}

// Servers lists the ways to the display, SPICE first; none for nil.
func (d *Display) Servers() []DisplayServer {
	if d == nil {
		return nil
	}
	var out []DisplayServer
	if s := d.SPICE; s != nil {
		out = append(out, DisplayServer{qemucmd.SPICEProtocol, displayPorts("vm.display.spice.port", s.Port), s.Socket})
	}
	if v := d.VNC; v != nil {
		ports := append(displayPorts("vm.display.vnc.port", v.Port), displayPorts("vm.display.vnc.websocket", v.Websocket)...)
		out = append(out, DisplayServer{qemucmd.VNCProtocol, ports, v.Socket})
	}
	return out
}

func displayPorts(field string, port *int) []DisplayPort {
	if port == nil {
		return nil
	}
	return []DisplayPort{{field, *port}}
}
