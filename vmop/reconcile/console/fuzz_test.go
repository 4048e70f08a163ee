package console_test

import (
	"crypto/x509/pkix"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/console"
	corev1 "k8s.io/api/core/v1"
)

// Whatever a Secret has, there is a viewer file of it or an error, and the file has the
// entries that it should have and no other.
func FuzzCertificate(f *testing.F) {
	f.Add(certificate(f, pkix.Name{CommonName: "authority"}), certificate(f, pkix.Name{CommonName: "desk", Organization: []string{`a,b\c`}}))
	f.Add([]byte{}, certificate(f, pkix.Name{}))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("x"))
	f.Fuzz(func(t *testing.T, ca, crt []byte) {
		authorities, subject, err := console.Certificate(&corev1.Secret{Data: map[string][]byte{"ca.crt": ca, "tls.crt": crt}})
		if err != nil {
			return
		}
		file, err := console.ViewerFile{Protocol: console.SPICE, Host: "desk", Port: 5900, TLS: true, Authorities: authorities, Subject: subject}.Marshal()
		if err != nil {
			return
		}
		for i, line := range strings.Split(strings.TrimSuffix(string(file), "\n"), "\n") {
			key, _, entry := strings.Cut(line, "=")
			if i == 0 && line == "[virt-viewer]" {
				continue
			}
			if !entry || !strings.Contains(" type host tls-port ca host-subject ", " "+key+" ") {
				t.Fatalf("line %d is %q", i+1, line)
			}
		}
	})
}
