package spice

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The used messages, by their numbers in the protocol's spice.proto.
const (
	// From the server, in any channel.
	msgSetAck = 3
	msgPing   = 4
	// To the server, in any channel.
	msgAckSync = 1
	msgAck     = 2
	msgPong    = 3

	msgMainInit       = 103
	msgMainChannels   = 104
	msgAttachChannels = 104

	msgDisplayInit    = 101
	msgDisplaySurface = 314
)

const longest = 64 << 20

// header precedes each message of a connection without the capability "mini header".
type header struct {
	Serial uint64
	Type   uint16
	Size   uint32
	List   uint32
}

type mainInit struct {
	Session, ChannelsHint, MouseModes, MouseMode, Agent, Tokens, Clock, RAMHint uint32
}

type ping struct {
	ID   uint32
	Time uint64
}

type setAck struct {
	Generation, Window uint32
}

// displayInit declares the client's caches, which are required but may be small.
type displayInit struct {
	CacheID         uint8
	CacheSize       int64
	DictionaryID    uint8
	DictionaryBytes int32
}

type surface struct {
	ID, Width, Height, Format, Flags uint32
}

func readMessage(r io.Reader) (kind uint16, body []byte, err error) {
	var h header
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return 0, nil, err
	}
	if h.Size > longest {
		return 0, nil, fmt.Errorf("a message of %d bytes", h.Size)
	}
	body = make([]byte, h.Size)
	_, err = io.ReadFull(r, body)
	return h.Type, body, err
}

func decode[T any](body []byte) (T, error) {
	var v T
	_, err := binary.Decode(body, binary.LittleEndian, &v)
	return v, err
}
