package rfb

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
)

// VeNCrypt is a security type that includes TLS; its subtypes say whether a password follows.
const (
	securityVeNCrypt = 19
	x509None         = 260
	x509VNC          = 261
)

// HandshakeTLS exchanges the initial messages with a server that requires TLS, and returns the
// connection inside of it.
func HandshakeTLS(conn net.Conn, config *tls.Config, password string) (net.Conn, Screen, error) {
	var s Screen
	types, err := securityTypes(conn)
	if err != nil {
		return nil, s, err
	}
	if !slices.Equal(types, []byte{securityVeNCrypt}) {
		return nil, s, fmt.Errorf("security types %v: want %d alone", types, securityVeNCrypt)
	}
	if _, err := conn.Write([]byte{securityVeNCrypt}); err != nil {
		return nil, s, err
	}
	var version [2]byte
	if _, err := io.ReadFull(conn, version[:]); err != nil || version != [2]byte{0, 2} {
		return nil, s, fmt.Errorf("VeNCrypt version %v: %w", version, err)
	}
	if _, err := conn.Write(version[:]); err != nil {
		return nil, s, err
	}
	var offer struct{ Refused, Count uint8 }
	if err := binary.Read(conn, binary.BigEndian, &offer); err != nil || offer.Refused != 0 {
		return nil, s, fmt.Errorf("VeNCrypt %+v: %w", offer, err)
	}
	subtypes := make([]uint32, offer.Count)
	if err := binary.Read(conn, binary.BigEndian, subtypes); err != nil {
		return nil, s, fmt.Errorf("VeNCrypt subtypes: %w", err)
	}
	switch {
	case slices.Equal(subtypes, []uint32{x509VNC}):
		s.Password = true
	case !slices.Equal(subtypes, []uint32{x509None}):
		return nil, s, fmt.Errorf("VeNCrypt subtypes %v: want %d or %d", subtypes, x509None, x509VNC)
	}
	if err := binary.Write(conn, binary.BigEndian, subtypes[0]); err != nil {
		return nil, s, err
	}
	var accepted [1]byte
	if _, err := io.ReadFull(conn, accepted[:]); err != nil || accepted[0] != 1 {
		return nil, s, fmt.Errorf("VeNCrypt subtype %d is not accepted: %w", subtypes[0], err)
	}
	inside := tls.Client(conn, config)
	return inside, s, authenticate(inside, &s, password)
}
