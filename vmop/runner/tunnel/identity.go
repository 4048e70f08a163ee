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

// Identity is a key and a certificate of it. It says who somebody is to those who know
// its fingerprint, and nothing else in the certificate counts.
type Identity struct {
	certificate tls.Certificate
	fingerprint string
}

// NewIdentity makes a key that nobody else has, and which ends with the process.
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

// LoadIdentity reads a certificate and its key, both of PEM's form.
func LoadIdentity(certificate, key string) (Identity, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return Identity{}, fmt.Errorf("read the certificate %s and its key: %w", certificate, err)
	}
	return newIdentity(pair)
}

// ParseIdentity understands a certificate and its key, both of PEM's form.
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

// Fingerprint is what others know the identity by: the SHA-256 digest of its public
// key, in hexadecimal digits.
func (i Identity) Fingerprint() string { return i.fingerprint }

// Fingerprint is that of the first certificate in a text of PEM's form.
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

// TLS is for either end of a connection with somebody of this fingerprint, and nobody
// else: a handshake with another one fails with [ErrStranger].
func (i Identity) TLS(other string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.certificate},
		ClientAuth: tls.RequireAnyClientCert,
		// The key itself is compared, which no authority could do better.
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

// ErrStranger is the error when the other end does not have the key that it is known by.
var ErrStranger = errors.New("the other end has another key than it should")
