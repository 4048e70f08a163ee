package spec

import "github.com/vmop/sdk/vmop/names"

// +kubebuilder:object:generate=false

// DisplayServer is one of the ways to a machine's display. All that is the same
// for every protocol goes over the list of them ([Display.Servers]).
type DisplayServer struct {
	// Protocol is QEMU's name of it.
	Protocol string
	// Ports are the TCP ports that it listens on; none if it is on a UNIX socket.
	Ports []DisplayPort
	// Openable servers may admit any client where there is no password, if the administrator allows
	// it. All others then listen for their own pod or host only.
	Openable bool
	// GenerateSecret asks for a display password.
	GenerateSecret bool
}

// +kubebuilder:object:generate=false

// DisplayPort is a port of a [DisplayServer].
type DisplayPort struct {
	// Name is that of the port of pods and services.
	Name string
	// Field is the path of the field that has it, such as
	// "spec.vm.display.vnc.port".
	Field string
	Port  int32
}

// DisplayPortField is the path of the field that a port of pods and services comes
// from, by the port's name; empty if it is none of a display.
func DisplayPortField(name string) string {
	switch name {
	case names.SPICEPortName:
		return "spec.vm.display.spice.port"
	case names.VNCPortName:
		return "spec.vm.display.vnc.port"
	case names.WebsocketPortName:
		return "spec.vm.display.vnc.websocket"
	}
	return ""
}

// Servers lists the ways to the display of a machine with its defaults, SPICE
// first; none for nil.
func (d *Display) Servers() []DisplayServer {
	if d == nil {
		return nil
	}
	var out []DisplayServer
	if s := d.Spice; s != nil {
		out = append(out, DisplayServer{
			Protocol: "spice", Openable: true, GenerateSecret: s.GenerateSecret != nil && *s.GenerateSecret,
			Ports: displayPorts(names.SPICEPortName, s.Port),
		})
	}
	if v := d.VNC; v != nil {
		ports := displayPorts(names.VNCPortName, v.Port)
		ports = append(ports, displayPorts(names.WebsocketPortName, v.Websocket)...)
		out = append(out, DisplayServer{Protocol: "vnc", Ports: ports, GenerateSecret: v.GenerateSecret != nil && *v.GenerateSecret})
	}
	return out
}

func displayPorts(name string, port *int32) []DisplayPort {
	if port == nil {
		return nil
	}
	return []DisplayPort{{Name: name, Field: DisplayPortField(name), Port: *port}}
}
