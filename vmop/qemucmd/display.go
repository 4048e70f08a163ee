package qemucmd

import (
	"path"
	"slices"
)

func (b *builder) display() {
	b.add(Option{Flag: "-display", HeadKey: "type", Head: "none", Why: "no window on the host; SPICE, if there is one, is separate"})
}

// TLSFiles are the names of the files in [Display.TLSDir], as QEMU and its SPICE server expect
// them: the certificate with its intermediates, its key, and the authority's certificate.
const (
	TLSCertFile = "server-cert.pem"
	TLSKeyFile  = "server-key.pem"
	TLSCAFile   = "ca-cert.pem"
)

// certificates adds the TLS credentials of the displays' ports. The SPICE server reads the files
// itself.
func (b *builder) certificates() {
	d := b.m.Display
	if d == nil || d.TLSDir == "" {
		return
	}
	var encrypted []displayServer
	for s := range d.servers {
		if s.socket() == "" {
			encrypted = append(encrypted, s)
		}
	}
	if len(encrypted) == 0 {
		return
	}
	b.path("display.tlsDir", d.TLSDir)
	for _, name := range []string{TLSCertFile, TLSKeyFile, TLSCAFile} {
		b.file(File{Purpose: FileDisplayTLS, Path: path.Join(d.TLSDir, name)})
	}
	if slices.ContainsFunc(encrypted, displayServer.needsCertificate) {
		props := []Prop{{"dir", Str(d.TLSDir)}, {"endpoint", Str("server")}, {"verify-peer", Bool(false)}}
		if d.TLSWithoutAuthority {
			props = append(props, Prop{"sanity-check", Bool(false)})
		}
		b.object("tls-creds-x509", displayTLS, "the certificate of the VNC server; its clients need none", props...)
	}
}
