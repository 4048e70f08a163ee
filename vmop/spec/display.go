package spec

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
)

// +kubebuilder:object:generate=false

// DisplayServer is one of the ways to a machine's display. All that is the same
// for every protocol goes over the list of them ([Display.Servers]).
type DisplayServer struct {
	// Protocol is QEMU's name of it; see [limits.DisplayProtocol].
	Protocol string
	// Ports are the TCP ports that it listens on; none if it is on a UNIX socket.
	Ports []DisplayPort
	// OnSocket is true if the manifest wants it on a UNIX socket.
	OnSocket bool
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
func DisplayPortField(name string) string { return displayFields[name] }

var displayFields = func() map[string]string {
	fields := map[string]string{}
	for _, protocol := range limits.DisplayProtocols() {
		for _, p := range protocol.Ports {
			fields[p.Name] = "spec.vm.display." + protocol.Name + "." + p.Field
		}
	}
	return fields
}()

// Servers lists the ways to the display of a machine with its defaults, in the order of
// [limits.DisplayProtocols]; none for nil.
func (d *Display) Servers() []DisplayServer {
	if d == nil {
		return nil
	}
	out := make([]DisplayServer, 0, len(limits.DisplayProtocols()))
	for s := range d.servers {
		made := *s.makesPassword()
		server := DisplayServer{
			Protocol: s.protocol(), OnSocket: s.onSocket(), Openable: s.admitsWithoutPassword(),
			GenerateSecret: made != nil && *made,
		}
		for i, p := range limits.Display(s.protocol()).Ports {
			if number := *s.port(i); number != nil && !s.onSocket() {
				server.Ports = append(server.Ports, DisplayPort{Name: p.Name, Field: displayFields[p.Name], Port: *number})
			}
		}
		out = append(out, server)
	}
	return out
}

func defaultDisplay(d *Display) {
	setPointer(&d.Outputs, 1)
	for s := range d.servers {
		for i, p := range limits.Display(s.protocol()).Ports {
			if p.Default != 0 && !s.onSocket() {
				setPointer(s.port(i), p.Default)
			}
		}
		setPointer(s.makesPassword(), true)
		s.setDefaults()
	}
}

// displayDefaults are the fields of a type with a default in the definition, if it is
// that of a protocol.
func displayDefaults(t reflect.Type) []string {
	pointer := reflect.PointerTo(t)
	if !pointer.Implements(reflect.TypeFor[displayServer]()) {
		return nil
	}
	return reflect.Zero(pointer).Interface().(displayServer).defaulted()
}

func validateDisplay(d *Display, path spot) field.ErrorList {
	errs := limited(path.Child("outputs"), *d.Outputs, limits.Outputs(int64(*d.Outputs)))
	errs = append(errs, validateUser(d.LoggedInUser, path.Child("loggedInUser"))...)
	if d.TLS != nil {
		at := path.Child("tls", "secretName")
		switch {
		case d.TLS.SecretName == "" && !d.TLS.GenerateSecret:
			errs = append(errs, requiredAt(at, "name a Secret with tls.crt and tls.key, or have one made by generateSecret: true"))
		case d.TLS.SecretName != "" && d.TLS.GenerateSecret:
			errs = append(errs, invalidAt(at, d.TLS.SecretName, "must not be given with generateSecret: true, which makes another one"))
		case !d.TLS.GenerateSecret:
			errs = append(errs, invalid(at, d.TLS.SecretName, isSubdomain)...)
		}
	}
	taken := map[int32]string{}
	for s := range d.servers {
		at := path.Child(s.protocol())
		errs = append(errs, validateDisplayPorts(s, at, taken)...)
		errs = append(errs, s.validate(at)...)
	}
	return errs
}

// validateDisplayPorts checks the ports of a server, which none before it may have taken.
func validateDisplayPorts(s displayServer, path spot, taken map[int32]string) (errs field.ErrorList) {
	for i, p := range limits.Display(s.protocol()).Ports {
		number, at := *s.port(i), path.Child(p.Field)
		switch {
		case number == nil:
		case s.onSocket():
			errs = append(errs, forbiddenAt(at, "a server on a UNIX socket has none; remove it or unixSocket"))
		default:
			errs = append(errs, limited(at, *number, p.Check(int64(*number)))...)
			if by := taken[*number]; by != "" {
				errs = append(errs, invalidAt(at, *number, "is already taken by "+by))
				continue
			}
			taken[*number] = displayFields[p.Name]
		}
	}
	return errs
}
