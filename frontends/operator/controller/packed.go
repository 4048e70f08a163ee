package controller

import (
	"bytes"
	_ "embed"
	"sync"

	"github.com/klauspost/compress/s2"
)

// typical is a machine that runs, as API servers have it. TestTypicalMachine renews it.
//
//go:embed typical.json
var typical []byte

// dictionary is what most machines have in common: the names of fields and conditions and
// what the conditions say.
var dictionary = sync.OnceValue(func() *s2.Dict { return s2.MakeDict(typical, nil) })

// packed is JSON that is kept for long and read now and then. Of a machine it takes a
// tenth to a quarter of the text, and as many microseconds to be read as it has kilobytes.
type packed []byte

func pack(text []byte) packed {
	return bytes.Clone(dictionary().Encode(nil, text)) // which has room for what cannot be packed
}

// text is what was packed; nothing, if nothing was.
func (p packed) text() []byte {
	text, err := dictionary().Decode(nil, p)
	if err != nil {
		return nil // it was not packed here, and reading it tells
	}
	return text
}
