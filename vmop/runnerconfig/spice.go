package runnerconfig

import (
	"github.com/vmop/sdk/internal/jsonwriter"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// SPICE configures the SPICE server.
type SPICE struct {
	// Port is a TCP port; nil means 5900 unless Socket is set.
	Port *int `json:"port,omitempty"`
	// Address is the address to listen on. Empty means all with a display
	// password or with Open, and the loopback interface without.
	Address string `json:"address,omitempty"`
	// Open admits any client where there is no display password, as VM-Operator's runner does.
	Open bool `json:"open,omitempty"`
	// Socket replaces the port by a UNIX socket.
	Socket string `json:"socket,omitempty"`
	// StreamingVideo is QEMU's streaming-video. VM-Operator's controller writes
	// the hyphenated key and its runner reads the other; both are read here.
	StreamingVideo       string `json:"streaming-video,omitempty"`
	StreamingVideoLegacy string `json:"streamingVideo,omitempty"`
	// USBRedirects is the number of USB redirection channels; nil means 2.
	USBRedirects *int `json:"usbRedirects,omitempty"`
}

func (s *SPICE) write(w *jsonwriter.Writer) {
	w.Open('{')
	number(w, "port", s.Port)
	w.Text("address", s.Address)
	w.Flag("open", s.Open)
	w.Text("socket", s.Socket)
	w.Text("streaming-video", s.StreamingVideo)
	w.Text("streamingVideo", s.StreamingVideoLegacy)
	number(w, "usbRedirects", s.USBRedirects)
	w.Close('}')
}

func (*SPICE) protocol() qemucmd.DisplayProtocol  { return qemucmd.SPICEProtocol }
func (s *SPICE) port(int) **int                   { return &s.Port }
func (s *SPICE) place() (address, socket *string) { return &s.Address, &s.Socket }
func (s *SPICE) open() *bool                      { return &s.Open }
func (s *SPICE) setDefaults()                     { setDefaultPointer(&s.USBRedirects, DefaultUSBRedirects) }

func (s *SPICE) copyInto(d *Display) {
	c := *s
	d.SPICE = &c
}

func (s *SPICE) validate(v *validator) {
	if n := s.USBRedirects; n != nil {
		v.limit("vm.display.spice.usbRedirects", *n, limits.USBRedirects(int64(*n)))
	}
	if s.StreamingVideo != "" {
		v.limit("vm.display.spice.streaming-video", s.StreamingVideo, limits.StreamingVideo(s.StreamingVideo))
	}
}

func (s *SPICE) machine(d *qemucmd.Display, at listening, password bool) {
	d.SPICE = &qemucmd.SPICE{Address: at.address, Socket: at.socket, Port: at.port, Ticketing: password, StreamingVideo: s.StreamingVideo}
	if s.USBRedirects != nil {
		d.SPICE.USBRedirects = *s.USBRedirects
	}
}
