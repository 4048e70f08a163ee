package qemucmd

import (
	"strconv"

	"github.com/vmop/sdk/vmop/limits"
)

func (*SPICE) protocol() DisplayProtocol { return SPICEProtocol }
func (s *SPICE) socket() string          { return s.Socket }
func (*SPICE) needsCertificate() bool    { return false }
func (s *SPICE) overhead() int64         { return int64(s.USBRedirects) * overheadRedirect }

func (b *builder) spice() {
	if b.m.Display == nil || b.m.Display.SPICE == nil {
		return
	}
	s := *b.m.Display.SPICE
	if !b.h.SPICE {
		b.errorf("display.spice", "%s has no SPICE (Fedora: package qemu-ui-spice-core, Alpine: qemu-ui-spice-core, Arch: qemu-ui-spice-core)", b.h.QEMU)
	}
	b.add(Option{
		Flag: "-spice", Props: append(b.spiceAddress(s), b.spiceOptions(s)...),
		Why: "the display, sound and USB of the machine over the network",
	})
	b.chardev("spicevmc", SPICEAgentChardev, "clipboard and window size", Prop{"name", Str("vdagent")})
	b.channel("display.spice", SPICEAgentChannel, portVDAgent, "com.redhat.spice.0", SPICEAgentChardev, "the SPICE agent in the guest")
	b.add(Option{
		Flag: "-audiodev", HeadKey: "driver", Head: "spice", ID: "audio1", JSON: true,
		Why: "sound goes to the viewer",
	})
	b.device("display.spice", "hda-duplex", "codec0", "loudspeaker and microphone",
		Prop{"bus", Bus("sound0.0")}, Prop{"audiodev", Ref("audio1")})
	if !b.invalid("display.spice.usbRedirects", s.USBRedirects, limits.USBRedirects(int64(s.USBRedirects))) {
		return
	}
	for i := range s.USBRedirects {
		n := strconv.Itoa(i)
		b.chardev("spicevmc", "charredir"+n, "a channel for a USB device at the viewer", Prop{"name", Str("usbredir")})
		b.device("display.spice.usbRedirects", "usb-redir", "redir"+n, "a USB device at the viewer, plugged in here",
			append(usbPort(usbPortRedirect+i), Prop{"chardev", Ref("charredir" + n)})...)
	}
}

func (b *builder) spiceAddress(s SPICE) []Prop {
	if s.Socket != "" {
		if s.Address != "" || s.Port != 0 {
			b.errorf("display.spice.socket", "either a socket or an address and a port can be given")
		}
		b.socket(SocketSPICE, Socket{Path: s.Socket})
		return []Prop{{"unix", Bool(true)}, {"addr", Str(s.Socket)}}
	}
	b.invalid("display.spice.port", s.Port, limits.Port(int64(s.Port)))
	props := []Prop{{"port", Int(s.Port)}}
	if dir := b.m.Display.TLSDir; dir != "" {
		props = []Prop{{"tls-port", Int(s.Port)}, {"x509-dir", Str(dir)}}
	}
	if s.Address != "" {
		b.text("display.spice.address", s.Address)
		props = append(props, Prop{"addr", Str(s.Address)})
	}
	return props
}

func (b *builder) spiceOptions(s SPICE) []Prop {
	props := []Prop{{"disable-ticketing", Bool(!s.Ticketing)}}
	if s.StreamingVideo != "" {
		b.invalid("display.spice.streamingVideo", s.StreamingVideo, limits.StreamingVideo(s.StreamingVideo))
		props = append(props, Prop{"streaming-video", Str(s.StreamingVideo)})
	}
	return append(props, Prop{"seamless-migration", Bool(true)})
}
