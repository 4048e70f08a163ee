package qemucmd

import (
	"path"
	"slices"
)

// servers goes over the servers of a display: none for nil. A protocol is a field above,
// its line here, a type with the methods of [displayServer], and a row of [kinds].
func (d *Display) servers(yield func(displayServer) bool) {
	if d == nil {
		return
	}
	_ = (d.SPICE == nil || yield(d.SPICE)) &&
		(d.VNC == nil || yield(d.VNC))
}

// displayServer is what the server of one protocol tells those who ask about all.
type displayServer interface {
	protocol() DisplayProtocol
	// socket is the path of its UNIX socket; "" if it is on a port instead.
	socket() string
	// needsCertificate reports whether QEMU is given the certificate as an object.
	needsCertificate() bool
	// overhead is the memory that it needs beside what every server needs.
	overhead() int64
}

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
