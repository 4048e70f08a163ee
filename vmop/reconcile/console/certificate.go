package console

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/vmop/names"
)

// Certificate returns what a viewer needs of a display with TLS, from the Secret with its
// certificate: the certificates of authorities to trust, and the subject to expect, for a
// [ViewerFile]. The authorities are empty if the Secret has none, as with cert-manager's ACME
// issuers: the viewer's system then has to trust the issuer. The subject is empty if it has no
// common name, or parts that viewers do not know; they compare the host then.
func Certificate(secret *corev1.Secret) (authorities, subject string, err error) {
	if secret == nil {
		return "", "", errors.New("there is no Secret: the pointer is nil")
	}
	fail := func(err error) (string, string, error) {
		return "", "", fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	if authorities = strings.TrimSpace(string(secret.Data[names.CertificateAuthorityKey])); authorities != "" {
		authorities += "\n"
		if _, err := first(names.CertificateAuthorityKey, []byte(authorities)); err != nil {
			return fail(err)
		}
	}
	cert, err := first(corev1.TLSCertKey, secret.Data[corev1.TLSCertKey])
	if err != nil {
		return fail(err)
	}
	return authorities, viewerSubject(cert), nil
}

func first(key string, data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New(key + " has no certificate in PEM's form")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return cert, nil
}

// subjectNames are OpenSSL's names of the parts of a subject, by which viewers compare them.
var subjectNames = map[string]string{
	"2.5.4.3": "CN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "street",
	"2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.17": "postalCode", "1.2.840.113549.1.9.1": "emailAddress", "0.9.2342.19200300.100.1.25": "DC",
}

// viewerSubject formats a certificate's subject for SPICE's viewers: NAME=VALUE in the order of
// the certificate, separated by commas, with backslashes before commas and backslashes.
func viewerSubject(cert *x509.Certificate) string {
	var parts []string
	named := false
	for _, n := range cert.Subject.Names {
		name, value := subjectNames[asn1.ObjectIdentifier(n.Type).String()], fmt.Sprint(n.Value)
		if name == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
			return ""
		}
		named = named || name == "CN"
		parts = append(parts, name+"="+strings.NewReplacer(`\`, `\\`, ",", `\,`).Replace(value))
	}
	if !named {
		return ""
	}
	return strings.Join(parts, ",")
}
