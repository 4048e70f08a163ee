package qemucmd

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
)

func (b *builder) networks() {
	slots := b.nicSlots()
	if n := len(b.m.Networks); n > slots*functions {
		b.errorf("networks", "%d networks: there are PCI addresses for %d", n, slots*functions)
		return
	}
	macs := map[string]string{}
	forwards := map[string]string{}
	for i, n := range b.m.Networks {
		field := "networks[" + strconv.Itoa(i) + "]"
		id := netdevID(i)
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
		model, err := limits.NICModel(n.Device)
		if err != nil {
			b.invalid(field+".device", n.Device, err)
			continue
		}
		props := b.tapCard(field+".tap", model, n.Tap, []Prop{{"netdev", Ref(id)}, {"mac", Str(mac)}})
		b.device(field+".device", model, NICID(i), "the guest's network card", spread(slotNIC, slots, i, props...)...)
	}
}

func (b *builder) mac(field, s string) (string, bool) {
	if s == "" {
		b.errorf(field, "an address must be given: QEMU's default is the same in every machine")
		return "", false
	}
	mac, err := limits.MAC(s)
	if err != nil {
		b.invalid(field, s, err)
	}
	return mac, err == nil
}

func (b *builder) netdev(kind, id, why string, props ...Prop) {
	b.add(Option{
		Flag: "-netdev", HeadKey: "type", Head: kind, ID: id, Props: props,
		JSON: true, Why: why,
	})
}

func (b *builder) tap(field, id string, t TapNetwork) {
	if len(t.FDs) > 0 {
		b.openTap(field, id, t)
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
		b.invalid(field+".bridge", t.Bridge, limits.InterfaceName(t.Bridge))
		props = append(props, Prop{"br", Str(t.Bridge)})
	}
	b.netdev("bridge", id, "QEMU's bridge helper opens a tap device on the bridge",
		append(props, Prop{"helper", Str(helper)})...)
}

func (b *builder) openTap(field, id string, t TapNetwork) {
	props := []Prop{{"fd", FD(t.FDs[0])}}
	if len(t.FDs) > 1 {
		props = []Prop{{"fds", descriptors(t.FDs)}}
	}
	switch n := len(t.VhostFDs); {
	case n == 0:
	case n != len(t.FDs):
		b.errorf(field+".vhostFDs", "%d descriptors for %d queues", n, len(t.FDs))
	case n == 1:
		props = append(props, Prop{"vhost", Bool(true)}, Prop{"vhostfd", FD(t.VhostFDs[0])})
	default:
		props = append(props, Prop{"vhost", Bool(true)}, Prop{"vhostfds", descriptors(t.VhostFDs)})
	}
	b.netdev("tap", id, "a tap device that was opened before QEMU started", props...)
}

func descriptors(fds []int) Str {
	var s []string
	for _, fd := range fds {
		s = append(s, strconv.Itoa(fd))
	}
	return Str(strings.Join(s, ":"))
}

// ethernetMTU is a guest's default, in bytes; QEMU accepts 68 to 65535.
const ethernetMTU, minMTU, maxMTU = 1500, 68, 65535

func (b *builder) tapCard(field, model string, t *TapNetwork, props []Prop) []Prop {
	if t == nil {
		return props
	}
	virtio := strings.HasPrefix(model, "virtio-net-")
	if len(t.FDs) > 1 {
		if !virtio {
			b.errorf(field+".fds", "%d descriptors: a %s has one queue", len(t.FDs), model)
		}
		props = append(props, Prop{"mq", Bool(true)})
	}
	if t.MTU != 0 && (t.MTU < minMTU || t.MTU > maxMTU) {
		b.errorf(field+".mtu", "%d is no MTU: want %d to %d bytes", t.MTU, minMTU, maxMTU)
	} else if virtio && t.MTU != 0 && t.MTU != ethernetMTU {
		props = append(props, Prop{"host_mtu", Int(t.MTU)})
	}
	return props
}

func (b *builder) user(field, id string, u UserNetwork, seen map[string]string) {
	var props []Prop
	if u.Net != "" {
		b.invalid(field+".net", u.Net, limits.UserNetwork(u.Net))
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

// hostForward renders one rule in the syntax of slirp, which has no quoting, so each part is
// checked.
func (b *builder) hostForward(field string, f HostForward, seen map[string]string) (string, bool) {
	before := len(b.errs)
	protocol, address := f.Protocol, f.HostAddress
	protocol = cmp.Or(protocol, "tcp")
	b.invalid(field+"protocol", protocol, limits.ForwardProtocol(protocol))
	// By default, other hosts cannot reach the guest.
	address = cmp.Or(address, "127.0.0.1")
	b.invalid(field+"hostAddress", address, limits.ForwardAddress(address))
	for _, p := range []struct {
		name string
		port int
	}{{"hostPort", f.HostPort}, {"guestPort", f.GuestPort}} {
		b.invalid(field+p.name, p.port, limits.Port(int64(p.port)))
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
