package limits

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// MAC checks the hardware address of an interface, and returns it in lower case with colons.
// Hyphens are accepted, too, as by QEMU.
func MAC(s string) (string, error) {
	hw, err := net.ParseMAC(s)
	switch {
	case err != nil || len(hw) != 6 || strings.Contains(s, "."):
		return "", errors.New("must be a MAC address such as 52:54:00:ab:cd:ef")
	case hw[0]&1 != 0:
		return "", errors.New("is a multicast address; the first byte of an interface's own address is even")
	case hw.String() == "00:00:00:00:00:00":
		return "", errors.New("is no interface's address; give one such as 52:54:00:ab:cd:ef")
	}
	return hw.String(), nil
}

// NICModels are QEMU's network cards that have a PCI address. Others (usb-net, ne2k_isa) do not fit
// the machine's slots.
func NICModels() []string { return slices.Clone(nicModels) }

var nicModels = []string{
	"e1000", "e1000-82544gc", "e1000-82545em", "e1000e", "i82550", "i82551", "i82557a", "i82557b", "i82557c",
	"i82558a", "i82558b", "i82559a", "i82559b", "i82559c", "i82559er", "i82562", "i82801", "igb", "ne2k_pci",
	"pcnet", "rtl8139", "sungem", "tulip", "virtio-net-pci", "virtio-net-pci-non-transitional",
	"virtio-net-pci-transitional", "vmxnet3",
}

// NICModel returns QEMU's name of a network card. "" and VM-Operator's short name are
// virtio-net-pci.
func NICModel(device string) (string, error) {
	model := device
	if model == "" || model == "virtio-net" {
		model = "virtio-net-pci"
	}
	if !slices.Contains(nicModels, model) {
		return "", fmt.Errorf("must be one of QEMU's PCI network cards: virtio-net, %s", strings.Join(nicModels, ", "))
	}
	return model, nil
}

// InterfaceName checks the name of a bridge by the kernel's rule for interfaces, dev_valid_name.
func InterfaceName(s string) error {
	if len(s) > 15 || s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/: \t\n\v\f\r") {
		return errors.New("must be the name of a network interface: 1 to 15 bytes, without slash, colon and spaces")
	}
	return Text(s)
}

// UserNetwork checks a network in the form of QEMU's slirp: an IPv4 address with the length of its
// prefix, with a netmask, or alone. The prefix leaves room for the gateway, the name server and one
// guest.
func UserNetwork(s string) error {
	bad := errors.New("must be an IPv4 network such as 10.0.2.0/24, with a prefix of 4 to 29 bits")
	address, mask, masked := strings.Cut(s, "/")
	if a, err := netip.ParseAddr(address); err != nil || !a.Is4() {
		return bad
	}
	if !masked {
		return nil
	}
	bits, err := strconv.Atoi(mask)
	if err != nil {
		m, err := netip.ParseAddr(mask)
		if err != nil || !m.Is4() {
			return bad
		}
		quad := m.As4()
		ones, size := net.IPMask(quad[:]).Size()
		if size == 0 {
			return bad // not contiguous
		}
		bits = ones
	}
	if bits < 4 || bits > 29 || strings.HasPrefix(mask, "+") {
		return bad
	}
	return nil
}

// ForwardProtocol checks the protocol of a forwarded port.
func ForwardProtocol(s string) error { return oneOf(s, []string{"tcp", "udp"}) }

// ForwardAddress checks the host's address of a forwarded port. QEMU forwards IPv4 only.
func ForwardAddress(s string) error {
	if a, err := netip.ParseAddr(s); err != nil || !a.Is4() {
		return errors.New("must be an IPv4 address such as 127.0.0.1")
	}
	return nil
}
