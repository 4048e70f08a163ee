package spec

import "github.com/vmop/sdk/vmop/names"

// DisplayServer is one of the ways to a machine's display. All that is the same
// for every protocol goes over the list of them ([Display.Servers]).
//
// +kubebuilder:object:generate=false
type DisplayServer struct {
	// Protocol is QEMU's name of it.
	Protocol string
	// Ports are the TCP ports that it listens on; none if it is on a UNIX socket.
	Ports []DisplayPort
	// Open servers let everybody in where there is no password; the others then
	// listen for their own pod or host only.
	Open bool
	// GenerateSecret asks for a display password.
	GenerateSecret bool
}

// DisplayPort is a port of a [DisplayServer].
//
// +kubebuilder:object:generate=false
type DisplayPort struct {
	// Name is that of the port of pods and services.
	Name string
	// Field is the path of the field that has it, such as
	// "spec.vm.display.vnc.port".
	Field string
	Port  int32
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
			Protocol: "spice", Open: true, GenerateSecret: s.GenerateSecret != nil && *s.GenerateSecret,
			Ports: displayPorts(DisplayPort{Name: names.SPICEPortName, Field: "spec.vm.display.spice.port"}, s.Port),
		})
	}
	if v := d.VNC; v != nil {
		ports := displayPorts(DisplayPort{Name: names.VNCPortName, Field: "spec.vm.display.vnc.port"}, v.Port)
		ports = append(ports, displayPorts(DisplayPort{Name: names.WebsocketPortName, Field: "spec.vm.display.vnc.websocket"}, v.Websocket)...)
		out = append(out, DisplayServer{Protocol: "vnc", Ports: ports, GenerateSecret: v.GenerateSecret != nil && *v.GenerateSecret})
	}
	return out
}

func displayPorts(p DisplayPort, port *int32) []DisplayPort {
	if port == nil {
		return nil
	}
	p.Port = *port
	return []DisplayPort{p}
}
