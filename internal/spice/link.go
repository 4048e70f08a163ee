package spice

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" // the protocol demands it
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrRefused reports that the server did not accept the password.
var ErrRefused = errors.New("the SPICE server refused the client")

// link opens a channel ("Spice protocol", section "Channel link establishment"): a link message,
// the server's reply with a key, the password encrypted with it, a result. session is 0 for a main
// channel, which begins a session.
func link(conn io.ReadWriter, session uint32, ch Channel, password string) error {
	type header struct {
		Magic              [4]byte
		Major, Minor, Size uint32
	}
	type message struct {
		Session                               uint32
		Channel                               Channel
		CommonCaps, ChannelCaps, OffsetOfCaps uint32
	}
	m := message{Session: session, Channel: ch}
	size := uint32(binary.Size(m))
	m.OffsetOfCaps = size
	var out bytes.Buffer
	for _, part := range []any{header{[4]byte{'R', 'E', 'D', 'Q'}, 2, 2, size}, m} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	if _, err := conn.Write(out.Bytes()); err != nil {
		return err
	}
	var h header
	if err := binary.Read(conn, binary.LittleEndian, &h); err != nil {
		return fmt.Errorf("link reply: %w", err)
	}
	reply := make([]byte, min(h.Size, 4096))
	if _, err := io.ReadFull(conn, reply); err != nil {
		return fmt.Errorf("link reply: %w", err)
	}
	const keySize = 162
	if len(reply) < 4+keySize || binary.LittleEndian.Uint32(reply) != 0 {
		return fmt.Errorf("link reply %x", reply)
	}
	parsed, err := x509.ParsePKIXPublicKey(reply[4 : 4+keySize])
	if err != nil {
		return fmt.Errorf("link reply: %w", err)
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return fmt.Errorf("link reply: key %T", parsed)
	}
	ticket, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, key, append([]byte(password), 0), nil)
	if err != nil {
		return err
	}
	if _, err := conn.Write(ticket); err != nil {
		return err
	}
	var result uint32
	if err := binary.Read(conn, binary.LittleEndian, &result); err != nil {
		return fmt.Errorf("link result: %w", err)
	}
	const permissionDenied = 7
	switch result {
	case 0:
		return nil
	case permissionDenied:
		return ErrRefused
	default:
		return fmt.Errorf("link result: SPICE error %d", result)
	}
}
