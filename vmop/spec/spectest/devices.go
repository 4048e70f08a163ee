package spectest

import (
	"fmt"
	"net"
	"strings"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

func drawShares(t *rapid.T, m *spec.Machine, oneHost bool) {
	for i := range count(t, "shares", 2, limits.MaxShares) {
		s := spec.Share{
			// A number of its own keeps tags and places apart.
			Tag:      fmt.Sprintf("%s%d", rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,28}_`).Draw(t, "tag"), i),
			ReadOnly: rapid.Bool().Draw(t, "readOnly"),
			Protocol: rapid.SampledFrom([]spec.ShareProtocol{"", spec.ShareVirtioFS, spec.Share9P}).Draw(t, "protocol"),
		}
		if maybe(t, "mountPoint") {
			s.MountPoint = fmt.Sprintf("/srv/%s/%d", rapid.SampledFrom([]string{"a", "data,x=y", `"q"`, "grün", "a:b"}).Draw(t, "mountPoint"), i)
		}
		if oneHost && maybe(t, "hostPath") {
			s.HostPath = File().Draw(t, "hostPath")
		} else {
			s.PersistentVolumeClaim = &spec.VolumeClaimReference{ClaimName: fmt.Sprintf("share%d-%s", i, subdomain().Draw(t, "share"))}
		}
		m.Shares = append(m.Shares, s)
	}
}

func drawUSBDevices(t *rapid.T, m *spec.Machine) {
	for i := range count(t, "usbDevices", 2, limits.MaxUSBDevices) {
		m.USBDevices = append(m.USBDevices, spec.USBDevice{
			Vendor:  rapid.StringMatching(`[0-9A-Fa-f]{3}[1-9a-fA-F]`).Draw(t, "vendor"),
			Product: rapid.StringMatching(`[0-9A-Fa-f]{3}`).Draw(t, "product") + fmt.Sprintf("%X", i+1),
		})
	}
}

// ports are those that something listens on, as they are drawn.
type ports map[spec.ForwardProtocol]map[int32]bool

func (p ports) draw(t *rapid.T, what string, protocol spec.ForwardProtocol, least int32) int32 {
	if p[protocol] == nil {
		p[protocol] = map[int32]bool{}
	}
	return free(p[protocol], rapid.Int32Range(least, 65535).Draw(t, what), least, 65535)
}

func drawDisplay(t *rapid.T, m *spec.Machine, taken ports) {
	// Other ports are drawn so that those remain which are had without being named.
	taken[spec.ForwardTCP] = map[int32]bool{limits.SPICEPort: true, limits.VNCPort: true}
	if !maybe(t, "display") {
		return
	}
	m.Display = &spec.Display{Outputs: drawInt(t, "outputs", 1, 16)}
	if maybe(t, "loggedInUser") {
		m.Display.LoggedInUser = strings.Join(strings.Fields(Text().Draw(t, "loggedInUser")), "_")
	}
	if maybe(t, "tls") {
		m.Display.TLS = &spec.DisplayTLS{GenerateSecret: true}
		if maybe(t, "secretName") {
			m.Display.TLS = &spec.DisplayTLS{SecretName: subdomain().Draw(t, "secretName")}
		}
	}
	port := func(what string, least int32) *int32 {
		if !maybe(t, what) {
			return nil
		}
		return new(taken.draw(t, what, spec.ForwardTCP, least))
	}
	if maybe(t, "spice") {
		m.Display.Spice = &spec.Spice{
			Port:           port("port", 1),
			Server:         rapid.SampledFrom([]string{"", "viewer.example.org", "2001:db8::1"}).Draw(t, "server"),
			GenerateSecret: drawBool(t, "generateSecret"),
			ProxyURL:       rapid.SampledFrom([]string{"", "http://proxy.example.org:3128"}).Draw(t, "proxyUrl"),
			StreamingVideo: rapid.SampledFrom([]string{"", "off", "filter", "all"}).Draw(t, "streamingVideo"),
			UsbRedirects:   drawInt(t, "usbRedirects", 0, int32(limits.MaxUSBRedirects-len(m.USBDevices))),
		}
	}
	if m.Display.Spice == nil || m.Display.Spice.Port != nil {
		delete(taken[spec.ForwardTCP], limits.SPICEPort)
	}
	if maybe(t, "vnc") {
		v := &spec.VNC{GenerateSecret: drawBool(t, "vncSecret")}
		m.Display.VNC = v
		if v.UnixSocket = maybe(t, "unixSocket"); !v.UnixSocket {
			v.Port, v.Websocket = port("vncPort", limits.MinVNCPort), port("websocketPort", 1)
		}
	}
	if v := m.Display.VNC; v == nil || v.UnixSocket || v.Port != nil {
		delete(taken[spec.ForwardTCP], limits.VNCPort)
	}
}

func drawNetworks(t *rapid.T, m *spec.Machine, taken ports) {
	device := func() string {
		return rapid.SampledFrom(append(limits.NICModels(), "", "virtio-net")).Draw(t, "device")
	}
	for i := range count(t, "networks", 3, limits.MaxNetworks) {
		mac := ""
		if maybe(t, "mac") {
			mac = fmt.Sprintf("%02x:54:00:%02x:%02X:%02x", rapid.IntRange(0, 127).Draw(t, "first")*2, i, rapid.IntRange(0, 255).Draw(t, "mac"), i)
			if maybe(t, "hyphens") {
				mac = strings.ReplaceAll(mac, ":", "-")
			}
		}
		if rapid.Bool().Draw(t, "tap") {
			m.Networks = append(m.Networks, spec.Network{Tap: &spec.TapNetwork{
				Device: device(), MAC: mac,
				Bridge: rapid.OneOf(
					rapid.SampledFrom([]string{"", "br0", "br-lan,1", "brücke"}),
					rapid.StringMatching(`[!-.0-9;-~]{3,15}`),
				).Draw(t, "bridge"),
			}})
			continue
		}
		user := &spec.UserNetwork{Device: device(), MAC: mac, Net: drawNet(t)}
		for range count(t, "hostForwards", 2, limits.MaxForwards) {
			user.HostForwards = append(user.HostForwards, drawForward(t, taken))
		}
		m.Networks = append(m.Networks, spec.Network{User: user})
	}
}

func drawForward(t *rapid.T, taken ports) spec.HostForward {
	f := spec.HostForward{
		Protocol:    rapid.SampledFrom([]spec.ForwardProtocol{"", spec.ForwardTCP, spec.ForwardUDP}).Draw(t, "protocol"),
		HostAddress: rapid.SampledFrom([]string{"", "127.0.0.1", "0.0.0.0", "192.0.2.7"}).Draw(t, "hostAddress"),
		GuestPort:   rapid.Int32Range(1, 65535).Draw(t, "guestPort"),
	}
	protocol := f.Protocol
	if protocol == "" {
		protocol = spec.ForwardTCP
	}
	f.HostPort = taken.draw(t, "hostPort", protocol, 1)
	return f
}

// drawNet draws a network of any address and prefix, in all of its spellings.
func drawNet(t *rapid.T) string {
	if !maybe(t, "net") {
		return ""
	}
	byte := func(name string) int { return rapid.IntRange(0, 255).Draw(t, name) }
	address := fmt.Sprintf("%d.%d.%d.%d", byte("a"), byte("b"), byte("c"), byte("d"))
	bits := rapid.IntRange(4, 29).Draw(t, "bits")
	switch rapid.IntRange(0, 2).Draw(t, "spelling") {
	case 0:
		return address
	case 1:
		return fmt.Sprintf("%s/%s", address, net.IP(net.CIDRMask(bits, 32)))
	}
	return fmt.Sprintf("%s/%d", address, bits)
}
