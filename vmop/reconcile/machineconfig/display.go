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

// onSockets moves the servers to sockets in a directory that want to be there.
func onSockets(d *runnerconfig.Display, dir string, wants func(qemucmd.DisplayProtocol) bool) {
	for _, s := range d.Servers() {
		if wants(s.Protocol) {
			s.MoveToSocket(path.Join(dir, s.Protocol.Socket().FileName()))
		}
	}
}

// saysSocket reports whether the manifest wants the server of a protocol on a socket.
func saysSocket(d *spec.Display, p qemucmd.DisplayProtocol) bool {
	return slices.ContainsFunc(d.Servers(), func(s spec.DisplayServer) bool { return s.Protocol == string(p) && s.OnSocket })
}

// clusterDisplay gives the display of a pod its place.
func clusterDisplay(c *runnerconfig.Config, vm *spec.VirtualMachine, open bool) {
	d := c.Runner.VM.Display
	for _, s := range d.Servers() {
		s.AdmitAnyone(open)
	}
	onSockets(d, RuntimeDir(vm.Name), func(p qemucmd.DisplayProtocol) bool { return saysSocket(vm.Spec.VM.Display, p) })
	if vm.Spec.VM.Display.TLS != nil {
		d.TLS = &runnerconfig.DisplayTLS{Dir: DisplayTLSDir}
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
	onSockets(d, l.RuntimeDir, func(p qemucmd.DisplayProtocol) bool {
		return !slices.Contains(l.ExplicitPorts, string(p)) || saysSocket(vm.Spec.VM.Display, p)
	})
	for _, s := range d.Servers() {
		// What was to be encrypted stays on the host: here are no Secrets with certificates.
		if len(s.Ports) > 0 && (!l.DisplayPassword || vm.Spec.VM.Display.TLS != nil) {
			s.ListenOn("127.0.0.1")
		}
	}
}
