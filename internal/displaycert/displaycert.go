// Package displaycert makes the certificates of displays: for each an authority of its
// own, whose key is forgotten once it has signed. Nobody can make another certificate
// that a viewer would take for the display's.
package displaycert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	corev1 "k8s.io/api/core/v1"
)

// Make generates random keys and returns the data of a Secret with cert-manager's names.
func Make(c *reconcile.Certificate) (map[string][]byte, error) {
	data, err := generate(c)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", c.CommonName, err)
	}
	return data, nil
}

func generate(c *reconcile.Certificate) (map[string][]byte, error) {
	var keys [2]*ecdsa.PrivateKey
	var serials [2]*big.Int
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
		if serials[i], err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126)); err != nil {
			return nil, err
		}
	}
	authority := &x509.Certificate{
		SerialNumber: serials[0], Subject: pkix.Name{CommonName: c.CommonName, OrganizationalUnit: []string{"authority"}},
		NotBefore: c.NotBefore, NotAfter: c.NotAfter,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: serials[1], Subject: pkix.Name{CommonName: c.CommonName},
		NotBefore: c.NotBefore, NotAfter: c.NotAfter, BasicConstraintsValid: true,
		// Older GnuTLS, and hence QEMU, requires both of servers.
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range c.Hosts {
		if ip := net.ParseIP(name); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, name)
		}
	}
	ca, err := signed(authority, authority, keys[0].Public(), keys[0])
	if err != nil {
		return nil, err
	}
	cert, err := signed(server, authority, keys[1].Public(), keys[0])
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(keys[1])
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		names.CertificateAuthorityKey: ca, corev1.TLSCertKey: cert,
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}, nil
}

func signed(c, by *x509.Certificate, public crypto.PublicKey, key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, c, by, public, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
