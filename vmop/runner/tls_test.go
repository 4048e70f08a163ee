package runner

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/internal/rfb"
	"github.com/vmop/sdk/internal/spice"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// certificates makes a certificate of desk.example.org as the operator does, and returns
// the directory with it for QEMU and what viewers trust.
func certificates(t *testing.T) (dir string, trusted *x509.CertPool) {
	t.Helper()
	now := time.Now()
	made, err := displaycert.Make(&reconcile.Certificate{
		CommonName: "desk", Hosts: []string{"desk.example.org", "127.0.0.1"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "tls,dir=x")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{qemucmd.TLSCAFile: "ca.crt", qemucmd.TLSCertFile: "tls.crt", qemucmd.TLSKeyFile: "tls.key"} {
		put(t, filepath.Join(dir, name), string(made[key]))
	}
	trusted = x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(made["ca.crt"]) {
		t.Fatal("no authority")
	}
	return dir, trusted
}

// encrypted starts a machine with SPICE and VNC by TLS.
func encrypted(t *testing.T, dir string) (spicePort, vncPort int) {
	t.Helper()
	c := testConfig(t)
	secret := t.TempDir()
	put(t, filepath.Join(secret, "display-password"), "geheim")
	spicePort, vncPort = freeDisplayPort(t), freeDisplayPort(t)
	c.Runner.VM.Display = &runnerconfig.Display{
		SPICE: &runnerconfig.SPICE{Port: &spicePort, Address: "127.0.0.1"},
		VNC:   &runnerconfig.VNC{Port: &vncPort, Address: "127.0.0.1"},
		TLS:   &runnerconfig.DisplayTLS{Dir: dir},
	}
	runnerconfig.Default(&c)
	r := start(t, c, testDirs(t), func(o *Options) { o.DisplaySecretDir = secret })
	r.until(t, "the password is set", func(s State) bool { return s.Phase == PhaseBooting && s.DisplayPasswordSerial == 1 })
	return spicePort, vncPort
}

// SPICE and VNC by TLS: the certificate is the one that was given, the password is
// asked for inside, and what does not speak TLS gets nothing.
func TestDisplayTLS(t *testing.T) {
	dir, trusted := certificates(t)
	spicePort, vncPort := encrypted(t, dir)
	ctx := withPatience(t)
	trust := &tls.Config{RootCAs: trusted, ServerName: "desk.example.org"}
	dial := func(port int) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(patience))
		}
		return conn, err
	}
	secure := func(ctx context.Context) (net.Conn, error) {
		return (&tls.Dialer{Config: trust}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", spicePort))
	}

	viewer, err := spice.Open(ctx, secure, "geheim")
	if err != nil {
		t.Fatal(err)
	}
	if width, height, err := viewer.Attach(ctx, spice.Channel{Type: spice.Display}); err != nil || width <= 0 || height <= 0 {
		t.Errorf("SPICE: %dx%d, %v", width, height, err)
	}
	if err := viewer.Close(); err != nil {
		t.Error(err)
	}
	if _, err := spice.Open(ctx, secure, "other"); !errors.Is(err, spice.ErrRefused) {
		t.Errorf("SPICE with a wrong password: %v", err)
	}
	plain := func(context.Context) (net.Conn, error) { return dial(spicePort) }
	if viewer, err := spice.Open(ctx, plain, "geheim"); err == nil {
		t.Errorf("SPICE without TLS: %v", viewer.Close())
	}

	conn, err := dial(vncPort)
	if err != nil {
		t.Fatal(err)
	}
	inside, screen, err := rfb.HandshakeTLS(conn, trust, "geheim")
	if err != nil || !screen.Password || screen.Width <= 0 {
		t.Fatalf("VNC: %+v, %v", screen, err)
	}
	if err := inside.Close(); err != nil {
		t.Error(err)
	}
	if conn, err = dial(vncPort); err != nil {
		t.Fatal(err)
	}
	if _, _, err := rfb.HandshakeTLS(conn, trust, "other"); !errors.Is(err, rfb.ErrRefused) {
		t.Errorf("VNC with a wrong password: %v", err)
	}
	_ = conn.Close()
	if conn, err = dial(vncPort); err != nil {
		t.Fatal(err)
	}
	if _, err := rfb.Handshake(conn, "geheim"); err == nil {
		t.Error("VNC without TLS")
	}
	_ = conn.Close()
}

// Issuers whose authority everybody knows give no certificate of it: QEMU and SPICE
// start all the same.
func TestDisplayTLSWithoutAuthority(t *testing.T) {
	dir, trusted := certificates(t)
	if err := os.Remove(filepath.Join(dir, qemucmd.TLSCAFile)); err != nil {
		t.Fatal(err)
	}
	spicePort, vncPort := encrypted(t, dir)
	ctx := withPatience(t)
	trust := &tls.Config{RootCAs: trusted, ServerName: "desk.example.org"}
	viewer, err := spice.Open(ctx, func(ctx context.Context) (net.Conn, error) {
		return (&tls.Dialer{Config: trust}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", spicePort))
	}, "geheim")
	if err != nil {
		t.Fatal(err)
	}
	if err := viewer.Close(); err != nil {
		t.Error(err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", vncPort))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	inside, _, err := rfb.HandshakeTLS(conn, trust, "geheim")
	if err != nil {
		t.Fatal(err)
	}
	if err := inside.Close(); err != nil {
		t.Error(err)
	}
}
