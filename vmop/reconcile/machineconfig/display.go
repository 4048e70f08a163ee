package machineconfig

import (
	"path"
	"slices"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// displayConfig is what a display is wherever the machine runs.
func displayConfig(d *spec.Display, login string) *runnerconfig.Display {
	out := &runnerconfig.Display{Outputs: int(*d.Outputs), LoggedInUser: d.LoggedInUser}
	if login != "" {
		out.LoggedInUser = login
	}
	if s := d.Spice; s != nil {
		out.SPICE = &runnerconfig.SPICE{
			Port:           intPointer(s.Port),
			StreamingVideo: s.StreamingVideo,
			USBRedirects:   intPointer(s.UsbRedirects),
		}
	}
	if v := d.VNC; v != nil {
		out.VNC = &runnerconfig.VNC{Port: intPointer(v.Port), Websocket: intPointer(v.Websocket)}
	}
	return out
}

// socketIn is the path of the socket of a protocol.
func socketIn(dir string, p qemucmd.DisplayProtocol) string {
	return path.Join(dir, p.Socket().FileName())
}

// wantsSocket reports whether a server, as the manifest has it, is to be on a socket: it has
// no port that a socket could replace.
func wantsSocket(s runnerconfig.DisplayServer) bool {
	return !slices.ContainsFunc(s.Ports, runnerconfig.DisplayPort.HasSocket)
}

// clusterDisplay gives the display of a pod its place.
func clusterDisplay(c *runnerconfig.Config, vm *spec.VirtualMachine, open bool) {
	for _, s := range c.Runner.VM.Display.Servers() {
		s.AdmitAnyone(open)
		if wantsSocket(s) {
			s.MoveToSocket(socketIn(RuntimeDir(vm.Name), s.Protocol))
		}
	}
	if vm.Spec.VM.Display.TLS != nil {
		c.Runner.VM.Display.TLS = &runnerconfig.DisplayTLS{Dir: DisplayTLSDir}
	}
}

// ExplicitPorts is [Host.ExplicitPorts] of a manifest.
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

// hostDisplay gives the display of a machine on one host its place. The default ports of
// manifests are those of pods; on a host other programs may use them.
func hostDisplay(c *runnerconfig.Config, vm *spec.VirtualMachine, l *Host) {
	d := c.Runner.VM.Display
	for _, s := range d.Servers() {
		if !slices.Contains(l.ExplicitPorts, string(s.Protocol)) || wantsSocket(s) {
			s.MoveToSocket(socketIn(l.RuntimeDir, s.Protocol))
		}
	}
	for _, s := range d.Servers() { // with the ports that are left
		// What was to be encrypted stays on the host: here are no Secrets with certificates.
		if len(s.Ports) > 0 && (!l.DisplayPassword || vm.Spec.VM.Display.TLS != nil) {
			s.ListenOn("127.0.0.1")
		}
	}
}
