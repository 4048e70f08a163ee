package objects

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

const (
	// firstOwnPort begins the range of display ports in the network of a node, used instead of
	// the default: below those that Kubernetes allocates to services (30000 to 32767) and Linux
	// to clients.
	firstOwnPort = 20000
	ownPorts     = 10000
)

// ListeningPort returns the port on which a display of a machine, with its defaults applied,
// listens: that of its manifest. A machine with a tap interface is in the network of its node,
// where only one machine can have a port: if its manifest has the default, the port is derived
// from its name, unless the administrator permits the default ([Settings.DisplayHostPorts]).
// Services keep the manifest's.
func ListeningPort(vm *spec.VirtualMachine, s *Settings, p spec.DisplayPort) int32 {
	place, byDefault := 0, false
	for i, protocol := range limits.DisplayProtocols() {
		for _, of := range protocol.Ports {
			if of.Name == p.Name {
				place, byDefault = i, of.Default != 0 && of.Default == p.Port
			}
		}
	}
	if !byDefault || !inNodeNetwork(vm) || s.DisplayHostPorts.Has(p.Port) {
		return p.Port
	}
	sum := sha256.Sum256([]byte(vm.Namespace + "/" + vm.Name))
	// Ports of SPICE are even, those of VNC odd; each two further protocols have a range of their
	// own.
	first := int32(firstOwnPort - ownPorts*(place/2))
	at := int32(binary.BigEndian.Uint32(sum[:4])%(ownPorts/2))*2 + int32(place%2)
	for taken(vm, first+at) {
		at = (at + 2) % ownPorts
	}
	return first + at
}

func inNodeNetwork(vm *spec.VirtualMachine) bool {
	return slices.ContainsFunc(vm.Spec.VM.Networks, func(n spec.Network) bool { return n.Tap != nil })
}

func taken(vm *spec.VirtualMachine, port int32) bool {
	for _, s := range vm.Spec.VM.Display.Servers() {
		if slices.ContainsFunc(s.Ports, func(p spec.DisplayPort) bool { return p.Port == port }) {
			return true
		}
	}
	return slices.ContainsFunc(vm.Spec.VM.Networks, func(n spec.Network) bool {
		return n.User != nil && slices.ContainsFunc(n.User.HostForwards, func(f spec.HostForward) bool { return f.HostPort == port })
	})
}

// PlaceDisplay sets the [ListeningPort] of each display in a machine's configuration.
func PlaceDisplay(c *runnerconfig.Config, vm *spec.VirtualMachine, s *Settings) {
	d := c.Runner.VM.Display
	if d == nil || !inNodeNetwork(vm) { // elsewhere it listens on the manifest's port
		return
	}
	wanted := vm.Spec.VM.Display.Servers()
	for _, server := range d.Servers() {
		for _, p := range server.Ports {
			if of, has := portNamed(wanted, p.Name); has {
				if port := int(ListeningPort(vm, s, of)); port != p.Port {
					p.Move(port)
				}
			}
		}
	}
}

func portNamed(servers []spec.DisplayServer, name string) (spec.DisplayPort, bool) {
	for _, s := range servers {
		for _, p := range s.Ports {
			if p.Name == name {
				return p, true
			}
		}
	}
	return spec.DisplayPort{}, false
}
