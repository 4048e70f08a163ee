package rfb

import (
	"context"
	"crypto/des" // the protocol demands it
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"slices"
	"time"
)

// ErrRefused reports that the server refuses the password, or all clients.
var ErrRefused = errors.New("the VNC server refused the client")

// Screen describes a server's display.
type Screen struct {
	// Width and Height are in pixels.
	Width, Height int
	// Name is the name of the desktop.
	Name string
	// Password reports whether the server asked for one.
	Password bool
}

// The security types of the protocol.
const (
	securityNone = 1
	securityVNC  = 2
)

const longest = 1 << 16

// Open connects to a server and shares its display. The caller must close the connection.
func Open(ctx context.Context, network, address, password string) (net.Conn, Screen, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, Screen{}, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(deadline)
	}
	var s Screen
	if err == nil {
		s, err = Handshake(conn, password)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, s, errors.Join(err, conn.Close())
	}
	return conn, s, nil
}

// Handshake exchanges the initial messages of protocol version 3.8.
func Handshake(conn io.ReadWriter, password string) (Screen, error) {
	var s Screen
	types, err := securityTypes(conn)
	if err != nil {
		return s, err
	}
	kind := byte(securityNone)
	if !slices.Contains(types, kind) {
		kind, s.Password = securityVNC, true
	}
	if !slices.Contains(types, kind) {
		return s, fmt.Errorf("security types %v: want %d or %d", types, securityNone, securityVNC)
	}
	if _, err := conn.Write([]byte{kind}); err != nil {
		return s, err
	}
	return s, authenticate(conn, &s, password)
}

func securityTypes(conn io.ReadWriter) ([]byte, error) {
	version := make([]byte, 12)
	if _, err := io.ReadFull(conn, version); err != nil {
		return nil, fmt.Errorf("protocol version: %w", err)
	}
	if string(version[:4]) != "RFB " {
		return nil, fmt.Errorf("protocol version: %q is not that of a VNC server", version)
	}
	if _, err := io.WriteString(conn, "RFB 003.008\n"); err != nil {
		return nil, err
	}
	types, err := counted(conn)
	if err != nil {
		return nil, fmt.Errorf("security types: %w", err)
	}
	return types, nil
}

func authenticate(conn io.ReadWriter, s *Screen, password string) error {
	if s.Password {
		if err := answer(conn, password); err != nil {
			return err
		}
	}
	var result uint32
	if err := binary.Read(conn, binary.BigEndian, &result); err != nil {
		return fmt.Errorf("security result: %w", err)
	}
	if result != 0 {
		reason, err := text(conn)
		return errors.Join(fmt.Errorf("%w: %s", ErrRefused, reason), err)
	}
	const shared = 1
	if _, err := conn.Write([]byte{shared}); err != nil {
		return err
	}
	var init struct {
		Width, Height uint16
		Format        [16]byte
	}
	if err := binary.Read(conn, binary.BigEndian, &init); err != nil {
		return fmt.Errorf("server init: %w", err)
	}
	s.Width, s.Height = int(init.Width), int(init.Height)
	var err error
	s.Name, err = text(conn)
	return err
}

// counted reads a list of bytes after its length; an empty one is a refusal.
func counted(r io.Reader) ([]byte, error) {
	n := make([]byte, 1)
	if _, err := io.ReadFull(r, n); err != nil {
		return nil, err
	}
	if n[0] == 0 {
		reason, err := text(r)
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrRefused, reason), err)
	}
	list := make([]byte, n[0])
	_, err := io.ReadFull(r, list)
	return list, err
}

func text(r io.Reader) (string, error) {
	var n uint32
	if err := binary.Read(r, binary.BigEndian, &n); err != nil {
		return "", err
	}
	if n > longest {
		return "", fmt.Errorf("a text of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return string(b), err
}

// answer encrypts the server's challenge with the first eight bytes of the password. The protocol
// reverses the bits of each byte of the key.
func answer(conn io.ReadWriter, password string) error {
	challenge := make([]byte, 2*des.BlockSize)
	if _, err := io.ReadFull(conn, challenge); err != nil {
		return fmt.Errorf("challenge: %w", err)
	}
	key := make([]byte, 8)
	copy(key, password)
	for i := range key {
		key[i] = bits.Reverse8(key[i])
	}
	cipher, err := des.NewCipher(key)
	if err != nil {
		return err
	}
	cipher.Encrypt(challenge, challenge)
	cipher.Encrypt(challenge[des.BlockSize:], challenge[des.BlockSize:])
	_, err = conn.Write(challenge)
	return err
}
