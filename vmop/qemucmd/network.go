package qemucmd

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// nicModel resolves QEMU's alias.
func nicModel(device string) string {
	switch device {
	case "", "virtio-net":
		return "virtio-net-pci"
	}
	return device
}

// pciNICs are QEMU's network cards that have a PCI address. Others (usb-net,
// ne2k_isa) cannot be put where the machine has its network cards.
var pciNICs = []string{
	"e1000", "e1000-82544gc", "e1000-82545em", "e1000e", "i82550", "i82551", "i82557a", "i82557b", "i82557c",
	"i82558a", "i82558b", "i82559a", "i82559b", "i82559c", "i82559er", "i82562", "i82801", "igb", "ne2k_pci",
	"pcnet", "rtl8139", "sungem", "tulip", "virtio-net-pci", "virtio-net-pci-non-transitional",
	"virtio-net-pci-transitional", "vmxnet3",
}

func (b *builder) networks() {
	if n := len(b.m.Networks); n > maxNICs {
		b.errorf("networks", "%d networks: there are PCI addresses for %d", n, maxNICs)
		return
	}
	macs := map[string]string{}
	forwards := map[string]string{}
	for i, n := range b.m.Networks {
		field := "networks[" + strconv.Itoa(i) + "]"
		id := "hostnet" + strconv.Itoa(i)
		mac, ok := b.mac(field+".mac", n.MAC)
		if ok {
			if other, dup := macs[mac]; dup {
				b.errorf(field+".mac", "%s is also the address of %s", mac, other)
			} else {
				macs[mac] = field
			}
		}
		switch {
		case n.Tap != nil && n.User == nil:
			b.tap(field+".tap", id, *n.Tap)
		case n.User != nil && n.Tap == nil:
			b.user(field+".user", id, *n.User, forwards)
		default:
			b.errorf(field, "exactly one of tap and user must be given")
		}
		model := nicModel(n.Device)
		if !slices.Contains(pciNICs, model) {
			b.errorf(field+".device", "%q is not one of QEMU's PCI network cards: %s", n.Device, strings.Join(pciNICs, ", "))
			continue
		}
		b.device(field+".device", model, "net"+strconv.Itoa(i), "the guest's network card",
			spread(slotNIC, nicSlots, i, Prop{"netdev", Ref(id)}, Prop{"mac", Str(mac)})...)
	}
}

// mac checks and normalizes an Ethernet address.
func (b *builder) mac(field, s string) (string, bool) {
	if s == "" {
		b.errorf(field, "an address must be given: QEMU's default is the same in every machine")
		return "", false
	}
	mac, err := net.ParseMAC(s)
	switch {
	case err != nil || len(mac) != 6:
		b.errorf(field, "%q is no Ethernet address: it must look like 52:54:00:12:34:56", s)
		return "", false
	case mac[0]&1 != 0:
		b.errorf(field, "%s is a multicast address, which no interface can have", s)
		return "", false
	case mac.String() == "00:00:00:00:00:00":
		b.errorf(field, "%s is no address", s)
		return "", false
	}
	return mac.String(), true
}

// netdev adds a -netdev option.
func (b *builder) netdev(kind, id, why string, props ...Prop) {
	b.add(Option{
		Flag: "-netdev", HeadKey: "type", Head: kind, ID: id, Props: props,
		JSON: true, Why: why,
	})
}

func (b *builder) tap(field, id string, t TapNetwork) {
	if t.FD != 0 {
		b.netdev("tap", id, "a tap device that was opened before QEMU started", Prop{"fd", FD(t.FD)})
		return
	}
	helper := b.h.BridgeHelper
	switch {
	case helper == "":
		b.errorf(field, "the host has no qemu-bridge-helper (Debian: package qemu-system-common, Fedora: qemu-common), and no open tap device was given")
	case strings.ContainsAny(helper, " \t"):
		b.errorf(field, "QEMU would run the bridge helper %q in a shell, because its path contains a space", helper)
	}
	props := []Prop{}
	if t.Bridge != "" {
		// The kernel's rule for interface names, dev_valid_name.
		if len(t.Bridge) > 15 || t.Bridge == "." || t.Bridge == ".." || strings.ContainsAny(t.Bridge, "/: \t\n\v\f\r") {
			b.errorf(field+".bridge", "%q is no name of a network interface", t.Bridge)
		}
		b.text(field+".bridge", t.Bridge)
		props = append(props, Prop{"br", Str(t.Bridge)})
	}
	b.netdev("bridge", id, "QEMU's bridge helper opens a tap device on the bridge",
		append(props, Prop{"helper", Str(helper)})...)
}

func (b *builder) user(field, id string, u UserNetwork, seen map[string]string) {
	var props []Prop
	if u.Net != "" {
		if !validUserNet(u.Net) {
			b.errorf(field+".net", "%q must be an IPv4 network like 10.0.2.0/24, with a prefix of 4 to 29 bits", u.Net)
		}
		props = append(props, Prop{"net", Str(u.Net)})
	}
	var forwards List
	for i, f := range u.HostForwards {
		if s, ok := b.hostForward(indexed(field+".hostForwards", i, ""), f, seen); ok {
			forwards = append(forwards, Object{{"str", Str(s)}})
		}
	}
	if len(forwards) > 0 {
		props = append(props, Prop{"hostfwd", forwards})
	}
	b.netdev("user", id, "a network in QEMU: no privileges, and only the forwarded ports lead in", props...)
}

// validUserNet accepts what QEMU's slirp accepts: the network with a prefix
// length, with a netmask, or alone. The prefix leaves room for the gateway, the
// name server and one guest.
func validUserNet(s string) bool {
	address, mask, masked := strings.Cut(s, "/")
	if a, err := netip.ParseAddr(address); err != nil || !a.Is4() {
		return false
	}
	if !masked {
		return true
	}
	length, err := strconv.Atoi(mask)
	if err != nil {
		m, err := netip.ParseAddr(mask)
		if err != nil || !m.Is4() {
			return false
		}
		quad := m.As4()
		ones, size := net.IPMask(quad[:]).Size()
		if size == 0 {
			return false // the ones are not at the front
		}
		length = ones
	}
	return length >= 4 && length <= 29 && !strings.HasPrefix(mask, "+")
}

// hostForward renders one rule in the syntax of slirp, whose parts are checked
// one by one so that nothing in them can mean something else.
func (b *builder) hostForward(field string, f HostForward, seen map[string]string) (string, bool) {
	before := len(b.errs)
	protocol, address := f.Protocol, f.HostAddress
	switch protocol {
	case "":
		protocol = "tcp"
	case "tcp", "udp":
	default:
		b.errorf(field+"protocol", "%q must be tcp or udp", protocol)
	}
	if address == "" {
		address = "127.0.0.1" // other machines do not reach the guest unless asked for
	} else if a, err := netip.ParseAddr(address); err != nil || !a.Is4() {
		b.errorf(field+"hostAddress", "%q is no IPv4 address, and QEMU forwards no others", address)
	}
	for _, p := range []struct {
		name string
		port int
	}{{"hostPort", f.HostPort}, {"guestPort", f.GuestPort}} {
		if p.port < 1 || p.port > 65535 {
			b.errorf(field+p.name, "%d is no port: it must be between 1 and 65535", p.port)
		}
	}
	if len(b.errs) > before {
		return "", false
	}
	host := protocol + ":" + address + ":" + strconv.Itoa(f.HostPort)
	if other, dup := seen[host]; dup {
		b.errorf(field+"hostPort", "%s is also forwarded by %s", host, other)
		return "", false
	}
	seen[host] = strings.TrimSuffix(field, ".")
	return host + "-:" + strconv.Itoa(f.GuestPort), true
}
