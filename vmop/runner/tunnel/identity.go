package tunnel

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Identity is a key and its certificate. A peer is authenticated by the fingerprint of the key
// alone; nothing else in the certificate counts.
type Identity struct {
	certificate tls.Certificate
	fingerprint string
}

// NewIdentity generates a key that exists only in this process.
func NewIdentity() (Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, fmt.Errorf("make a key: %w", err)
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "vmop"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(100, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return Identity{}, fmt.Errorf("make a certificate: %w", err)
	}
	return newIdentity(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})
}

// LoadIdentity reads a certificate and its key, both in PEM.
func LoadIdentity(certificate, key string) (Identity, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return Identity{}, fmt.Errorf("read the certificate %s and its key: %w", certificate, err)
	}
	return newIdentity(pair)
}

// ParseIdentity parses a certificate and its key, both in PEM.
func ParseIdentity(certificate, key []byte) (Identity, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return Identity{}, fmt.Errorf("read a certificate and its key: %w", err)
	}
	return newIdentity(pair)
}

func newIdentity(pair tls.Certificate) (Identity, error) {
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return Identity{}, fmt.Errorf("read the certificate: %w", err)
	}
	return Identity{certificate: pair, fingerprint: fingerprint(leaf)}, nil
}

// Fingerprint is the SHA-256 digest of the identity's public key, in hexadecimal digits.
func (i Identity) Fingerprint() string { return i.fingerprint }

// Fingerprint returns the fingerprint of the first certificate in a PEM text.
func Fingerprint(certificate []byte) (string, error) {
	block, _ := pem.Decode(certificate)
	if block == nil || block.Type != "CERTIFICATE" {
		return "", errors.New("no certificate of PEM's form was found")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", err
	}
	return fingerprint(c), nil
}

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// TLS returns the configuration of either end of a connection with the peer of this fingerprint: a
// handshake with any other fails with [ErrStranger].
func (i Identity) TLS(other string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.certificate},
		ClientAuth: tls.RequireAnyClientCert,
		// The key itself is compared below, which replaces a certificate authority.
		InsecureSkipVerify:     true,
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || other == "" || fingerprint(s.PeerCertificates[0]) != other {
				return ErrStranger
			}
			return nil
		},
	}
}

// ErrStranger is the error when the peer's key does not have the expected fingerprint.
var ErrStranger = errors.New("the other end has another key than it should")
