package qemucmd

import (
	"path"
	"slices"
)

// display keeps QEMU from opening a window.
func (b *builder) display() {
	b.add(Option{Flag: "-display", HeadKey: "type", Head: "none", Why: "no window on the host; SPICE, if there is one, is separate"})
}

// TLSFiles are the names of the files in [Display.TLSDir], which QEMU and its SPICE
// server give them both: the certificate with those between it and the authority's,
// its key, and the authority's.
const (
	TLSCertFile = "server-cert.pem"
	TLSKeyFile  = "server-key.pem"
	TLSCAFile   = "ca-cert.pem"
)

// certificates checks what encrypts the ports of displays. SPICE reads it by itself.
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
