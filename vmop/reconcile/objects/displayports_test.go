package objects_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// Machines in the network of their node do not share the default ports, and all
// others have what their manifest says.
func TestListeningPorts(t *testing.T) {
	machine := func(name string, edit func(*spec.Machine)) *spec.VirtualMachine {
		vm := &spec.VirtualMachine{}
		vm.Namespace, vm.Name = "lab", name
		vm.Spec.VM.Display = &spec.Display{Spice: &spec.Spice{}, VNC: &spec.VNC{}}
		vm.Spec.VM.Networks = []spec.Network{{Tap: &spec.TapNetwork{}}}
		if edit != nil {
			edit(&vm.Spec.VM)
		}
		spec.Default(vm)
		return vm
	}
	ports := func(vm *spec.VirtualMachine, s objects.Settings) [2]int32 {
		var out [2]int32
		for i, server := range vm.Spec.VM.Display.Servers() {
			out[i] = objects.ListeningPort(vm, &s, server.Ports[0])
		}
		return out
	}
	own := ports(machine("web", nil), objects.Settings{})
	if want := [2]int32{22880, 22881}; own != want { // viewers may have noted it
		t.Errorf("ports %v, want %v", own, want)
	}
	if other := ports(machine("db", nil), objects.Settings{}); other == own {
		t.Errorf("two machines have %v", own)
	}
	for what, c := range map[string]struct {
		edit func(*spec.Machine)
		s    objects.Settings
		want [2]int32
	}{
		"a network of its own": {edit: func(m *spec.Machine) { m.Networks = nil }, want: [2]int32{5900, 5901}},
		"chosen ports": {edit: func(m *spec.Machine) {
			spice, vnc := int32(5910), int32(5911)
			m.Display.Spice.Port, m.Display.VNC.Port = &spice, &vnc
		}, want: [2]int32{5910, 5911}},
		"as VM-Operator": {s: objects.Settings{DisplayHostPorts: objects.PortRange{First: 1, Last: 65535}}, want: [2]int32{5900, 5901}},
		"a forward has the port": {edit: func(m *spec.Machine) {
			m.Networks = append(m.Networks, spec.Network{User: &spec.UserNetwork{HostForwards: []spec.HostForward{{HostPort: own[0], GuestPort: 22}}}})
		}, want: [2]int32{own[0] + 2, own[1]}},
	} {
		if got := ports(machine("web", c.edit), c.s); got != c.want {
			t.Errorf("%s: ports %v, want %v", what, got, c.want)
		}
	}
}
