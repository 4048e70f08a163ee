package qemucmd

import "strconv"

// display keeps QEMU from opening a window.
func (b *builder) display() {
	b.add(Option{Flag: "-display", HeadKey: "type", Head: "none", Why: "no window on the host; SPICE, if there is one, is separate"})
}

// maxUSBRedirects is what the USB controller has left beside the tablet.
const maxUSBRedirects = usbPorts - usbPortRedirect + 1

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
	b.chardev("spicevmc", "vdagentdev", "clipboard and window size", Prop{"name", Str("vdagent")})
	b.channel("display.spice", "channel2", portVDAgent, "com.redhat.spice.0", "vdagentdev", "the SPICE agent in the guest")
	b.add(Option{
		Flag: "-audiodev", HeadKey: "driver", Head: "spice", ID: "audio1", JSON: true,
		Why: "sound goes to the viewer",
	})
	b.device("display.spice", "hda-duplex", "codec0", "loudspeaker and microphone",
		Prop{"bus", Bus("sound0.0")}, Prop{"audiodev", Ref("audio1")})
	if s.USBRedirects < 0 || s.USBRedirects > maxUSBRedirects {
		b.errorf("display.spice.usbRedirects", "%d is out of range: the USB controller has ports for %d", s.USBRedirects, maxUSBRedirects)
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
	if s.Port < 1 || s.Port > 65535 {
		b.errorf("display.spice.port", "%d is no port: it must be between 1 and 65535, or a socket be given", s.Port)
	}
	props := []Prop{{"port", Int(s.Port)}}
	if s.Address != "" {
		b.text("display.spice.address", s.Address)
		props = append(props, Prop{"addr", Str(s.Address)})
	}
	return props
}

func (b *builder) spiceOptions(s SPICE) []Prop {
	props := []Prop{{"disable-ticketing", Bool(!s.Ticketing)}}
	switch s.StreamingVideo {
	case "":
	case "off", "all", "filter":
		props = append(props, Prop{"streaming-video", Str(s.StreamingVideo)})
	default:
		b.errorf("display.spice.streamingVideo", "%q must be off, all or filter", s.StreamingVideo)
	}
	return append(props, Prop{"seamless-migration", Bool(true)})
}
