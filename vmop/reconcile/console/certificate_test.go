package console_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/reconcile/console"
)

func certificate(t testing.TB, subject pkix.Name) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: subject}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestCertificate(t *testing.T) {
	ca := certificate(t, pkix.Name{CommonName: "authority"})
	for want, subject := range map[string]pkix.Name{
		`C=DE,O=Desks\, Inc \\ Ltd,CN=desk`: {Country: []string{"DE"}, Organization: []string{`Desks, Inc \ Ltd`}, CommonName: "desk"},
		"CN=desk.example.org":               {CommonName: "desk.example.org"},
	} {
		authorities, got, err := console.Certificate(&corev1.Secret{Data: map[string][]byte{"ca.crt": ca, "tls.crt": certificate(t, subject)}})
		if authorities != string(ca) || got != want || err != nil {
			t.Errorf("subject %s, %v, want %s; authorities %q", got, err, want, authorities)
		}
	}
	// Of these viewers compare the host.
	for _, subject := range []pkix.Name{
		{}, {Organization: []string{"Desks"}},
		{CommonName: "desk", ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 2, 3}, Value: "x"}}},
		{CommonName: "a\nb"},
	} {
		if _, got, err := console.Certificate(&corev1.Secret{Data: map[string][]byte{"ca.crt": ca, "tls.crt": certificate(t, subject)}}); got != "" || err != nil {
			t.Errorf("%v: subject %q, %v", subject, got, err)
		}
	}
	// An issuer whose authority every system knows gives none.
	if authorities, got, err := console.Certificate(&corev1.Secret{Data: map[string][]byte{"tls.crt": ca}}); authorities != "" || got != "CN=authority" || err != nil {
		t.Errorf("authorities %q, subject %s, %v", authorities, got, err)
	}
	named := metav1.ObjectMeta{Namespace: "lab", Name: "desk-tls"}
	for want, data := range map[string]map[string][]byte{
		"secret lab/desk-tls: ca.crt has no certificate":  {"ca.crt": []byte("nonsense"), "tls.crt": ca},
		"secret lab/desk-tls: tls.crt has no certificate": {"ca.crt": ca, "tls.crt": []byte("nonsense")},
	} {
		if _, _, err := console.Certificate(&corev1.Secret{ObjectMeta: named, Data: data}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
