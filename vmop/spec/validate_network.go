package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
)

func validateNetworks(m *Machine, path spot) field.ErrorList {
	var errs field.ErrorList
	macs := map[string]spot{}
	taken := listeners{}
	if len(m.Networks) > 0 {
		// The servers of the display listen in the same host or pod.
		for _, server := range m.Display.Servers() {
			for _, p := range server.Ports {
				taken.take(HostForward{Protocol: ForwardTCP, HostPort: p.Port}, p.Field)
			}
		}
	}
	if n := len(m.Networks); n > limits.MaxNetworks {
		return field.ErrorList{tooManyAt(path, n, limits.MaxNetworks)}
	}
	for i := range m.Networks {
		n, at := &m.Networks[i], path.Index(i)
		switch {
		case n.Tap == nil && n.User == nil:
			errs = append(errs, requiredAt(at, "give exactly one of tap and user; there is none (user: {} is enough)"))
		case n.Tap != nil && n.User != nil:
			errs = append(errs, forbiddenAt(at.Child("user"), "give exactly one of tap and user; there are both"))
		}
		if t := n.Tap; t != nil {
			errs = append(errs, validateDevice(t.Device, at.Child("tap", "device"))...)
			errs = append(errs, limited(at.Child("tap", "bridge"), t.Bridge, limits.InterfaceName(t.Bridge))...)
			errs = append(errs, validateMAC(t.MAC, macs, at.Child("tap", "mac"))...)
		}
		if u := n.User; u != nil {
			errs = append(errs, validateDevice(u.Device, at.Child("user", "device"))...)
			errs = append(errs, validateMAC(u.MAC, macs, at.Child("user", "mac"))...)
			if u.Net != "" {
				errs = append(errs, limited(at.Child("user", "net"), u.Net, limits.UserNetwork(u.Net))...)
			}
			errs = append(errs, validateForwards(u.HostForwards, taken, at.Child("user", "hostForwards"))...)
		}
	}
	return errs
}

func validateForwards(forwards []HostForward, taken listeners, path spot) field.ErrorList {
	if n := len(forwards); n > limits.MaxForwards {
		return field.ErrorList{tooManyAt(path, n, limits.MaxForwards)}
	}
	var errs field.ErrorList
	for i, f := range forwards {
		at := path.Index(i)
		errs = append(errs, validateForward(f, at)...)
		if by := taken.take(f, at.String()); by != "" {
			errs = append(errs, invalidAt(at.Child("hostPort"), f.HostPort,
				fmt.Sprintf("%s port %d is already taken by %s", f.Protocol, f.HostPort, by)))
		}
	}
	return errs
}

// +kubebuilder:object:generate=false

// port is one that something on the host listens on.
type port struct {
	protocol ForwardProtocol
	number   int32
}

// listeners are those that listen on each port, by their address; "" is all
// addresses.
type listeners map[port]map[string]string

// take adds a listener. It returns who already has the port on an address in
// common, or nothing.
func (l listeners) take(f HostForward, by string) string {
	key, address := port{f.Protocol, f.HostPort}, f.HostAddress
	if address == "0.0.0.0" {
		address = ""
	}
	others := l[key]
	if others == nil {
		others = map[string]string{}
		l[key] = others
	}
	other := cmp.Or(others[""], others[address])
	if other == "" && address == "" && len(others) > 0 {
		// Which of several is named must not depend on the order of a map.
		other = slices.Min(slices.Collect(maps.Values(others)))
	}
	if others[address] == "" {
		others[address] = by
	}
	return other
}

func validateMAC(mac string, seen map[string]spot, path spot) field.ErrorList {
	if mac == "" {
		return nil
	}
	usual, err := limits.MAC(mac)
	if err != nil {
		return limited(path, mac, err)
	}
	if other, ok := seen[usual]; ok {
		return field.ErrorList{invalidAt(path, mac, "is also the address of "+other.String())}
	}
	seen[usual] = path
	return nil
}

func validateDevice(device string, path spot) field.ErrorList {
	_, err := limits.NICModel(device)
	return limited(path, device, err)
}

func validateForward(f HostForward, path spot) field.ErrorList {
	errs := oneOf(path.Child("protocol"), f.Protocol, ForwardTCP, ForwardUDP)
	if f.HostAddress != "" {
		errs = append(errs, limited(path.Child("hostAddress"), f.HostAddress, limits.ForwardAddress(f.HostAddress))...)
	}
	errs = append(errs, validatePort(f.HostPort, path.Child("hostPort"))...)
	return append(errs, validatePort(f.GuestPort, path.Child("guestPort"))...)
}
