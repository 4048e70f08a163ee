package controller

import (
	"bytes"
	_ "embed"
	"sync"

	"github.com/klauspost/compress/s2"
)

// typical is a running machine as API servers return it. TestTypicalMachine renews it.
//
//go:embed typical.json
var typical []byte

// dictionary has what most machines have in common: names of fields and conditions, and their
// messages.
var dictionary = sync.OnceValue(func() *s2.Dict { return s2.MakeDict(typical, nil) })

// packed is compressed JSON that is kept for long and read rarely. A machine takes a tenth to a
// quarter of its text, and about a microsecond per kilobyte to read.
type packed []byte

func pack(text []byte) packed {
	return bytes.Clone(dictionary().Encode(nil, text)) // with room for incompressible text
}

func (p packed) text() []byte {
	text, err := dictionary().Decode(nil, p)
	if err != nil {
		return nil // not packed here; decoding reports it
	}
	return text
}
