package machineconfig

import (
	"path"
	"slices"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

func displayConfig(d *spec.Display, login string) *runnerconfig.Display {
	out := &runnerconfig.Display{Outputs: int(*d.Outputs), LoggedInUser: d.LoggedInUser}
	if login != "" {
		out.LoggedInUser = login
	}
	for _, s := range d.Servers() {
		server := out.AddServer(s.Protocol)
		for _, p := range s.Ports {
			server.Listen(p.Name, int(p.Port))
		}
	}
	if s := d.Spice; s != nil {
		out.SPICE.StreamingVideo, out.SPICE.USBRedirects = s.StreamingVideo, intPointer(s.UsbRedirects)
	}
	return out
}

func socketIn(dir string, p qemucmd.DisplayProtocol) string {
	return path.Join(dir, p.Socket().FileName())
}

// wantsSocket reports whether a server is to be on a socket by its manifest: it has no port that
// a socket could replace.
func wantsSocket(s runnerconfig.DisplayServer) bool {
	return !slices.ContainsFunc(s.Ports, runnerconfig.DisplayPort.HasSocket)
}

// ExplicitPorts returns [Host.ExplicitPorts] of a manifest.
func ExplicitPorts(o *spec.Object) []string {
	if o == nil {
		return nil
	}
	var out []string
	for _, p := range limits.DisplayProtocols() {
		if len(p.Ports) > 0 && o.Written(spec.DisplayPortField(p.Ports[0].Name)) {
			out = append(out, p.Name)
		}
	}
	return out
}
