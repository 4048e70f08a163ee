package runnerconfig

import (
	"github.com/vmop/sdk/internal/jsonwriter"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
)

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
