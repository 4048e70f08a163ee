package spec

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateNetworks(m *Machine, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	macs := map[string]*field.Path{}
	var taken []listener
	if s := m.Display.Spice; s != nil {
		// The SPICE server listens on all addresses of the same host or pod.
		taken = append(taken, listener{HostForward{Protocol: ForwardTCP, HostPort: *s.Port}, "spec.vm.display.spice.port"})
	}
	if v := m.Display.VNC; v != nil && !v.UnixSocket {
		taken = append(taken, listener{HostForward{Protocol: ForwardTCP, HostPort: *v.Port}, "spec.vm.display.vnc.port"})
		if w := v.Websocket; w != nil {
			taken = append(taken, listener{HostForward{Protocol: ForwardTCP, HostPort: *w}, "spec.vm.display.vnc.websocket"})
		}
	}
	for i := range m.Networks {
		n, at := &m.Networks[i], path.Index(i)
		switch {
		case n.Tap == nil && n.User == nil:
			errs = append(errs, field.Required(at, "give exactly one of tap and user; there is none (user: {} is enough)"))
		case n.Tap != nil && n.User != nil:
			errs = append(errs, field.Forbidden(at.Child("user"), "give exactly one of tap and user; there are both"))
		}
		if t := n.Tap; t != nil {
			errs = append(errs, validateDevice(t.Device, at.Child("tap", "device"))...)
			errs = append(errs, validateBridge(t.Bridge, at.Child("tap", "bridge"))...)
			errs = append(errs, validateMAC(t.MAC, macs, at.Child("tap", "mac"))...)
		}
		if u := n.User; u != nil {
			errs = append(errs, validateDevice(u.Device, at.Child("user", "device"))...)
			errs = append(errs, validateMAC(u.MAC, macs, at.Child("user", "mac"))...)
			errs = append(errs, validateUserNet(u.Net, at.Child("user", "net"))...)
			for j, f := range u.HostForwards {
				at := at.Child("user", "hostForwards").Index(j)
				errs = append(errs, validateForward(f, at)...)
				for _, other := range taken {
					if other.collides(f) {
						errs = append(errs, field.Invalid(at.Child("hostPort"), f.HostPort,
							fmt.Sprintf("%s port %d is already taken by %s", f.Protocol, f.HostPort, other.by)))
						break
					}
				}
				taken = append(taken, listener{f, at.String()})
			}
		}
	}
	return errs
}

// listener is a port of the host that something listens on.
//
// +kubebuilder:object:generate=false
type listener struct {
	HostForward
	by string
}

// collides tells whether two listeners cannot both have their port: it is the
// same one and the addresses overlap.
func (l listener) collides(f HostForward) bool {
	everywhere := func(a string) bool { return a == "" || a == "0.0.0.0" }
	return l.Protocol == f.Protocol && l.HostPort == f.HostPort &&
		(everywhere(l.HostAddress) || everywhere(f.HostAddress) || l.HostAddress == f.HostAddress)
}

func validateDevice(device string, path *field.Path) field.ErrorList {
	return validateMatch(device, devicePattern(), "must be the name of a QEMU network device such as virtio-net or e1000e", path)
}

// validateBridge applies the kernel's rule for the names of interfaces.
func validateBridge(name string, path *field.Path) field.ErrorList {
	if len(name) > 15 || name == "." || name == ".." || strings.ContainsAny(name, "/:") || strings.ContainsFunc(name, isBlankOrControl) {
		return field.ErrorList{field.Invalid(path, name, "must be the name of a network interface: at most 15 bytes, without slash, colon and spaces")}
	}
	return nil
}

// validateMAC checks a MAC address, and that no other interface has it.
func validateMAC(mac string, seen map[string]*field.Path, path *field.Path) field.ErrorList {
	if mac == "" {
		return nil
	}
	const expected = "must be a MAC address such as 52:54:00:ab:cd:ef"
	hw, err := net.ParseMAC(mac)
	if err != nil || len(hw) != 6 || strings.Count(mac, ":") != 5 {
		return field.ErrorList{field.Invalid(path, mac, expected)}
	}
	switch {
	case hw[0]&1 != 0:
		return field.ErrorList{field.Invalid(path, mac, "is a multicast address; the first byte of an interface's own address is even")}
	case hw.String() == "00:00:00:00:00:00":
		return field.ErrorList{field.Invalid(path, mac, expected)}
	}
	if other, ok := seen[hw.String()]; ok {
		return field.ErrorList{field.Invalid(path, mac, "is also the address of "+other.String())}
	}
	seen[hw.String()] = path
	return nil
}

// validateUserNet checks the form that QEMU takes for net= of a user network:
// an address, and a mask as bits or as an address.
func validateUserNet(s string, path *field.Path) field.ErrorList {
	if s == "" {
		return nil
	}
	bad := field.ErrorList{field.Invalid(path, s, "must be an IPv4 network such as 10.0.2.0/24")}
	address, mask, hasMask := strings.Cut(s, "/")
	a, err := netip.ParseAddr(address)
	if err != nil || !a.Is4() {
		return bad
	}
	if !hasMask {
		return nil
	}
	bits, err := strconv.Atoi(mask)
	if err != nil {
		m, err := netip.ParseAddr(mask)
		if err != nil || !m.Is4() {
			return bad
		}
		b := m.As4()
		ones, size := net.IPv4Mask(b[0], b[1], b[2], b[3]).Size()
		if size == 0 {
			return bad
		}
		bits = ones
	}
	if bits < 1 || bits > 30 || strings.HasPrefix(mask, "+") {
		return bad
	}
	return nil
}

func validateForward(f HostForward, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("protocol"), f.Protocol, ForwardTCP, ForwardUDP)
	if f.HostAddress != "" {
		if a, err := netip.ParseAddr(f.HostAddress); err != nil || !a.Is4() {
			errs = append(errs, field.Invalid(path.Child("hostAddress"), f.HostAddress, "must be an IPv4 address such as 127.0.0.1"))
		}
	}
	errs = append(errs, validatePort(f.HostPort, path.Child("hostPort"))...)
	return append(errs, validatePort(f.GuestPort, path.Child("guestPort"))...)
}
