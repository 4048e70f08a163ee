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
	// firstOwnPort is the first of the ports that displays in the network of a node
	// have instead of the default: below those that Kubernetes gives to services
	// (30000 to 32767) and Linux to clients.
	firstOwnPort = 20000
	ownPorts     = 10000
)

// ListeningPort is the port on which a display of a machine, which must have its
// defaults, listens: the one of its manifest. A machine with a tap interface is in
// the network of its node, where a port is one machine's: if its manifest leaves the
// default, it has a port that follows from its name, unless the administrator lets it
// have the default ([Settings.DisplayHostPorts]). Services keep the manifest's.
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
	// Those of SPICE are even, those of VNC odd; two more protocols have a range of their own.
	first := int32(firstOwnPort - ownPorts*(place/2))
	at := int32(binary.BigEndian.Uint32(sum[:4])%(ownPorts/2))*2 + int32(place%2)
	for taken(vm, first+at) {
		at = (at + 2) % ownPorts
	}
	return first + at
}

// inNodeNetwork reports whether a machine is in the network of its node.
func inNodeNetwork(vm *spec.VirtualMachine) bool {
	return slices.ContainsFunc(vm.Spec.VM.Networks, func(n spec.Network) bool { return n.Tap != nil })
}

// taken reports whether a machine has another use for a port.
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

// PlaceDisplay gives the displays in a configuration of a machine their
// [ListeningPort].
func PlaceDisplay(c *runnerconfig.Config, vm *spec.VirtualMachine, s *Settings) {
	d := c.Runner.VM.Display
	if d == nil || !inNodeNetwork(vm) { // elsewhere it listens where the manifest says
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
