// Package plainjson writes JSON in which <, > and & stand as they are: it is read by people and
// by programs, and is no part of a page of HTML.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal without the escapes for HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Quote returns a text as a JSON string.
func Quote(s string) []byte {
	quoted, _ := Marshal(s) // a string always encodes
	return quoted
}
