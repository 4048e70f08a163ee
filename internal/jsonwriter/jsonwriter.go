// Package jsonwriter writes JSON by hand where encoding/json is too slow, byte for byte as that
// would: digests are made of what is written, and must not change.
package jsonwriter

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Writer appends to JSON, with the commas between members and items.
type Writer struct {
	out []byte
	err error
}

// New returns a writer that appends to what was begun, or to an empty slice with room.
func New(begun []byte) *Writer { return &Writer{out: begun} }

// Result returns what was written, and the first error.
func (w *Writer) Result() ([]byte, error) { return w.out, w.err }

// Fail records an error, unless it is nil or one is recorded already.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Open begins an object with { or an array with [.
func (w *Writer) Open(bracket byte) {
	w.comma()
	w.out = append(w.out, bracket)
}

// Close ends what [Writer.Open] has begun.
func (w *Writer) Close(bracket byte) { w.out = append(w.out, bracket) }

func (w *Writer) comma() {
	if n := len(w.out); n > 0 {
		switch w.out[n-1] {
		case '{', '[', ':':
		default:
			w.out = append(w.out, ',')
		}
	}
}

// Key writes the key of a member, whose value is written next.
func (w *Writer) Key(name string) {
	w.String(name)
	w.out = append(w.out, ':')
}

// String writes a string.
func (w *Writer) String(s string) {
	w.comma()
	w.out = append(w.out, '"')
	plain := 0 // up to where nothing is to be escaped
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n':
			w.out = append(w.out, s[plain:i]...)
			plain = i + 1
			if c == '\n' {
				c = 'n'
			}
			w.out = append(w.out, '\\', c)
		case c < ' ', c > '~', c == '<', c == '>', c == '&':
			quoted, _ := json.Marshal(s[plain:]) // a string always encodes
			w.out = append(w.out, quoted[1:]...)
			return
		}
	}
	w.out = append(w.out, s[plain:]...)
	w.out = append(w.out, '"')
}

// Int writes an integer.
func (w *Writer) Int(n int64) {
	w.comma()
	w.out = strconv.AppendInt(w.out, n, 10)
}

// Bool writes true or false.
func (w *Writer) Bool(b bool) {
	w.comma()
	w.out = strconv.AppendBool(w.out, b)
}

// Null writes null.
func (w *Writer) Null() {
	w.comma()
	w.out = append(w.out, "null"...)
}

// Raw writes a value that is JSON already.
func (w *Writer) Raw(raw json.RawMessage) {
	w.comma()
	if string(raw) == "{}" { // user data are often empty
		w.out = append(w.out, raw...)
		return
	}
	compact, err := json.Marshal(raw)
	w.Fail(err)
	w.out = append(w.out, compact...)
}

// Strings writes a map, sorted by its keys.
func (w *Writer) Strings(m map[string]string) {
	var some [16]string
	keys := some[:0]
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	w.Open('{')
	for _, key := range keys {
		w.Key(key)
		w.String(m[key])
	}
	w.Close('}')
}

// Text writes a member, unless it is empty.
func (w *Writer) Text(key, s string) {
	if s != "" {
		w.Key(key)
		w.String(s)
	}
}

// Number writes a member, unless it is 0.
func (w *Writer) Number(key string, n int64) {
	if n != 0 {
		w.Key(key)
		w.Int(n)
	}
}

// Flag writes a member, unless it is false.
func (w *Writer) Flag(key string, b bool) {
	if b {
		w.Key(key)
		w.Bool(b)
	}
}
