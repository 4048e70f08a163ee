package kubevirt

import (
	"strings"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

var models = map[string]string{
	"": "", "virtio": "", "e1000": "e1000", "e1000e": "e1000e", "rtl8139": "rtl8139", "ne2k_pci": "ne2k_pci", "pcnet": "pcnet",
}

// networks translates the interfaces, in their order. Without any, a machine has one on the pod's
// network.
func (m *machine) networks() {
	byName := map[string]*tree.Node{}
	for _, n := range m.instance.Get("networks").List() {
		byName[n.Get("name").String()] = n
	}
	devices, preferred := m.instance.Get("domain", "devices"), m.preference.Get("devices")
	interfaces := devices.Get("interfaces").List()
	attach, ok := either(devices.Get("autoattachPodInterface"), preferred.Get("preferredAutoattachPodInterface")).Bool()
	model := preferred.Get("preferredInterfaceModel")
	if len(interfaces) == 0 && (!ok || attach) {
		m.vm.Spec.VM.Networks = append(m.vm.Spec.VM.Networks, spec.Network{User: &spec.UserNetwork{Device: card(model)}})
	}
	model.Read()
	for _, i := range interfaces {
		m.nic(i, byName[i.Get("name").String()])
	}
	for _, n := range byName {
		n.Get("pod").Read()
	}
}

// nic translates one interface. The pod's network becomes QEMU's user network: the guest can
// connect out, and named ports are forwarded.
func (m *machine) nic(i, network *tree.Node) {
	device := card(either(modelOf(i), m.preference.Get("devices", "preferredInterfaceModel")))
	mac := strings.ReplaceAll(strings.ToLower(i.Get("macAddress").String()), "-", ":")
	if i.Get("sriov") != nil {
		i.Note("SR-IOV has no counterpart; the interface is left out")
		network.Get("multus").ReadAll() // part of the interface
		return
	}
	if other := network.Get("multus"); other.Is() {
		network.Remark("the network attachment %s has no counterpart; the interface is on a bridge of the host, spec.vm.networks[%d].tap.bridge, which must be chosen",
			other.Get("networkName").String(), len(m.vm.Spec.VM.Networks))
		for _, binding := range []string{"bridge", "masquerade", "binding"} {
			i.Get(binding).Read()
		}
		m.vm.Spec.VM.Networks = append(m.vm.Spec.VM.Networks, spec.Network{Tap: &spec.TapNetwork{Device: device, MAC: mac}})
		return
	}
	user := &spec.UserNetwork{Device: device, MAC: mac}
	switch {
	case i.Get("bridge") != nil:
		i.Get("bridge").Note("the guest does not get the pod's address; it is on QEMU's user network")
	case i.Get("binding").Is():
		i.Get("binding").Note("has no counterpart; the interface is on QEMU's user network")
	}
	for _, binding := range []string{"masquerade", "slirp", "passt"} {
		i.Get(binding).Read()
	}
	m.ports(i, user)
	m.vm.Spec.VM.Networks = append(m.vm.Spec.VM.Networks, spec.Network{User: user})
}

// modelOf returns the name of a network card; old manifests have it in a mapping.
func modelOf(i *tree.Node) *tree.Node {
	if inner := i.Get("model", "type"); inner.Is() {
		return inner
	}
	if model := i.Get("model"); model.Is() {
		return model
	}
	return nil
}

func card(model *tree.Node) string {
	device, known := models[model.String()]
	if !known {
		model.Note("is no network card that QEMU has on PCI; it is a virtio one")
	}
	return device
}

func (m *machine) ports(i *tree.Node, user *spec.UserNetwork) {
	for _, p := range i.Get("ports").List() {
		port, ok := p.Get("port").Int()
		if !ok || port < 1 || port > 65535 {
			p.Note("is no port and is left out")
			continue
		}
		protocol := spec.ForwardTCP
		switch name := strings.ToUpper(p.Get("protocol").String()); name {
		case "", "TCP":
		case "UDP":
			protocol = spec.ForwardUDP
		default:
			p.Note("protocol %s is not forwarded", name)
			continue
		}
		p.Get("name").Read()
		user.HostForwards = append(user.HostForwards, spec.HostForward{Protocol: protocol, HostPort: port, GuestPort: port})
	}
}
