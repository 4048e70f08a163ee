package qemucmd

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
)

func (*VNC) protocol() DisplayProtocol { return VNCProtocol }
func (v *VNC) socket() string          { return v.Socket }
func (*VNC) needsCertificate() bool    { return true }
func (*VNC) overhead() int64           { return 0 }

// vnc adds the VNC server. A client may take the display over: a viewer that does not ask to share
// it disconnects the others, as every viewer of SPICE does.
func (b *builder) vnc() {
	if b.m.Display == nil || b.m.Display.VNC == nil {
		return
	}
	v := *b.m.Display.VNC
	if !b.h.VNC {
		b.errorf("display.vnc", "%s was built without VNC", b.h.QEMU)
	}
	if v.Address != "" {
		b.text("display.vnc.address", v.Address)
		if strings.ContainsAny(v.Address, "[]") {
			b.errorf("display.vnc.address", "%q must be a host name or an address, without brackets", v.Address)
		}
	}
	if (v.Socket == "" || v.Websocket != 0) && !v.Password && !loopback(v.Address) {
		b.errorf("display.vnc.address", "a server without a password must listen on a loopback address such as 127.0.0.1, not on %q", v.Address)
	}
	o := Option{
		Flag: "-vnc", HeadKey: "vnc", Head: b.vncAddress(v),
		Why: "the display of the machine over the network",
	}
	o.Props = append(o.Props, Prop{"share", Str("allow-exclusive")}, Prop{"password", Bool(v.Password)})
	if b.m.Display.TLSDir != "" && v.Socket == "" {
		o.Props = append(o.Props, Prop{"tls-creds", Ref(displayTLS)})
	}
	if w := v.Websocket; w != 0 {
		if w < 1 || w > 65535 || w == v.Port && v.Socket == "" {
			b.errorf("display.vnc.websocket", "%d is no port for WebSockets: it must be between 1 and 65535, and not VNC's own", w)
		}
		at := strconv.Itoa(w)
		if v.Address != "" {
			at = vncHost(v.Address) + ":" + at
		}
		o.Props = append(o.Props, Prop{"websocket", Str(at)})
	}
	b.add(o)
}

func (b *builder) vncAddress(v VNC) string {
	if v.Socket != "" {
		if v.Port != 0 || v.Address != "" && v.Websocket == 0 {
			b.errorf("display.vnc.socket", "either a socket or an address and a port can be given")
		}
		b.socket(SocketVNC, Socket{Path: v.Socket})
		return "unix:" + v.Socket
	}
	b.invalid("display.vnc.port", v.Port, limits.VNCServerPort(int64(v.Port)))
	return vncHost(v.Address) + ":" + strconv.Itoa(v.Port-limits.MinVNCPort)
}

func vncHost(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}

func loopback(address string) bool {
	if address == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(address)
	return err == nil && a.Unmap().IsLoopback()
}
