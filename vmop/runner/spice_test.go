package runner

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// connectSPICE opens the main channel of a display, as the SPICE protocol has it
// ("Spice protocol", section "Channel link establishment"): a link message, the
// server's reply with a key, the password encrypted with it, a result.
func connectSPICE(socket, password string) (net.Conn, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := linkSPICE(conn, password); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func linkSPICE(conn net.Conn, password string) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	type header struct {
		Magic              [4]byte
		Major, Minor, Size uint32
	}
	type link struct {
		Connection                            uint32
		Channel, ID                           uint8
		CommonCaps, ChannelCaps, OffsetOfCaps uint32
	}
	magic := [4]byte{'R', 'E', 'D', 'Q'}
	message := link{Channel: mainChannel, OffsetOfCaps: 18}
	var out bytes.Buffer
	for _, part := range []any{header{magic, 2, 2, uint32(binary.Size(message))}, message} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	if _, err := conn.Write(out.Bytes()); err != nil {
		return err
	}
	var h header
	if err := binary.Read(conn, binary.LittleEndian, &h); err != nil {
		return err
	}
	reply := make([]byte, min(h.Size, 4096))
	if _, err := io.ReadFull(conn, reply); err != nil {
		return err
	}
	const keySize = 162
	if len(reply) < 4+keySize || binary.LittleEndian.Uint32(reply) != 0 {
		return fmt.Errorf("link reply %x", reply)
	}
	parsed, err := x509.ParsePKIXPublicKey(reply[4 : 4+keySize])
	if err != nil {
		return err
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return fmt.Errorf("key %T", parsed)
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
		return err
	}
	if result != 0 {
		return fmt.Errorf("SPICE error %d", result)
	}
	return nil
}
