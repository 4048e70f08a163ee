package runnerconfig

import (
	"path"

	"github.com/vmop/sdk/internal/jsonwriter"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// DisplayServer is one of the servers of a machine's display. Code that is the same for every
// protocol iterates over [Display.Servers].
type DisplayServer struct {
	Protocol qemucmd.DisplayProtocol
	// Ports are the TCP ports that it listens on; none if it only has a Socket.
	Ports []DisplayPort
	// Socket is the path of its UNIX socket; "" if it has none.
	Socket string
	// Address is the address of Ports; "" if it depends on the password.
	Address string

	server displayServer
}

// DisplayPort is a port of a [DisplayServer].
type DisplayPort struct {
	// Name is the name of the port in pods and services.
	Name string
	// Field is the path of its field, such as "vm.display.vnc.port".
	Field string
	Port  int

	field **int
	// first reports whether a socket replaces the port.
	first bool
}

var displayFields = func() map[string]string {
	fields := map[string]string{}
	for _, protocol := range limits.DisplayProtocols() {
		for _, p := range protocol.Ports {
			fields[p.Name] = "vm.display." + protocol.Name + "." + p.Field
		}
	}
	return fields
}()

// Servers lists the display's servers, in the order of [limits.DisplayProtocols]; none for nil.
// Their methods change the configuration, but not the listed values; those of a zero server do
// nothing.
func (d *Display) Servers() []DisplayServer {
	if d == nil {
		return nil
	}
	out := make([]DisplayServer, 0, len(limits.DisplayProtocols()))
	for s := range d.servers {
		address, socket := s.place()
		server := DisplayServer{Protocol: s.protocol(), Socket: *socket, Address: *address, server: s}
		for i, p := range s.protocol().Row().Ports {
			if field := s.port(i); *field != nil {
				server.Ports = append(server.Ports, DisplayPort{p.Name, displayFields[p.Name], **field, field, i == 0})
			}
		}
		out = append(out, server)
	}
	return out
}

// AddServer sets the display's server of a protocol, replacing any existing one. It does not listen
// yet. The result is the zero value for an unknown protocol.
func (d *Display) AddServer(protocol string) DisplayServer {
	if d == nil {
		return DisplayServer{}
	}
	for at := range d.slots {
		if at.protocol() == protocol {
			s := at.add()
			return DisplayServer{Protocol: s.protocol(), server: s}
		}
	}
	return DisplayServer{}
}

// Listen sets a port of a server, by the port's name in pods and services; only those in the
// protocol's row of [limits.DisplayProtocols] exist.
func (s DisplayServer) Listen(name string, port int) {
	if s.server == nil {
		return
	}
	for i, p := range s.Protocol.Row().Ports {
		if p.Name == name {
			*s.server.port(i) = &port
		}
	}
}

// MoveToSocket replaces a server's first port by a UNIX socket.
func (s DisplayServer) MoveToSocket(path string) {
	if s.server == nil {
		return
	}
	_, socket := s.server.place()
	*socket = path
	if len(s.Protocol.Row().Ports) > 0 {
		*s.server.port(0) = nil
	}
}

// ListenOn restricts the ports of a server to one address.
func (s DisplayServer) ListenOn(address string) {
	if s.server == nil {
		return
	}
	at, _ := s.server.place()
	*at = address
}

// AdmitAnyone sets whether clients are admitted without a password. It has no effect on protocols
// that never do.
func (s DisplayServer) AdmitAnyone(yes bool) {
	if s.server == nil {
		return
	}
	if open := s.server.open(); open != nil {
		*open = yes
	}
}

// HasSocket reports whether a UNIX socket can replace the port.
func (p DisplayPort) HasSocket() bool { return p.first }

// Move changes the number of a port.
func (p DisplayPort) Move(port int) {
	if p.field != nil {
		*p.field = &port
	}
}

func defaultServer(s displayServer) {
	_, socket := s.place()
	for i, p := range s.protocol().Row().Ports {
		if p.Default != 0 && *socket == "" {
			setDefaultPointer(s.port(i), int(p.Default))
		}
	}
	s.setDefaults()
}

const loopbackOnly = "127.0.0.1"

// listens returns where a server listens: without a password on the loopback interface only, unless
// an address is configured or it admits any client.
func listens(s displayServer, password bool) listening {
	address, socket := s.place()
	at := listening{address: *address, socket: *socket}
	first, more := configuredPorts(s)
	if at.socket == "" && first != nil {
		at.port = *first
	}
	open := s.open() != nil && *s.open()
	if at.address == "" && !password && !open && (at.socket == "" || more) {
		at.address = loopbackOnly
	}
	return at
}

// configuredPorts returns the port that a socket replaces, nil if there is none, and whether the
// server has another one.
func configuredPorts(s displayServer) (first *int, more bool) {
	for i := range s.protocol().Row().Ports {
		switch port := *s.port(i); {
		case i == 0:
			first = port
		case port != nil:
			more = true
		}
	}
	return first, more
}

func (v *validator) display(d *Display) {
	if d == nil {
		return
	}
	v.limit("vm.display.outputs", d.Outputs, limits.Outputs(int64(d.Outputs)))
	for s := range d.servers {
		v.displayServer(s)
		s.validate(v)
	}
	v.displayPorts(d)
	if t := d.TLS; t != nil {
		switch err := limits.Text(t.Dir); {
		case !path.IsAbs(t.Dir):
			v.add("vm.display.tls.dir", "%q must be an absolute path", t.Dir)
		case err != nil:
			v.limit("vm.display.tls.dir", t.Dir, err)
		}
	}
}

func (v *validator) displayServer(s displayServer) {
	address, socket := s.place()
	first, more := configuredPorts(s)
	if *socket != "" && (first != nil || *address != "" && !more) {
		v.add("vm.display."+string(s.protocol()), "has a socket and a port or address: want one of them")
	}
	for i, p := range s.protocol().Row().Ports {
		if number := *s.port(i); number != nil && (i > 0 || *socket == "") {
			v.limit(displayFields[p.Name], *number, p.Check(int64(*number)))
		}
	}
}

func (v *validator) displayPorts(d *Display) {
	taken := map[int]string{}
	for _, s := range d.Servers() {
		for _, p := range s.Ports {
			if by := taken[p.Port]; by != "" {
				v.add(p.Field, "%d is already the port of %s", p.Port, by)
			}
			taken[p.Port] = p.Field
		}
	}
}

func (d *Display) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Number("outputs", int64(d.Outputs))
	w.Text("loggedInUser", d.LoggedInUser)
	for s := range d.servers {
		w.Key(string(s.protocol()))
		s.write(w)
	}
	member(w, "tls", d.TLS)
	w.Close('}')
}

func (t *DisplayTLS) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Key("dir")
	w.String(t.Dir)
	w.Close('}')
}
