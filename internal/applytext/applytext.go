// Package applytext makes the bodies of server-side applies what the API server
// reads. It parses them as YAML, of which JSON is almost a part: a JSON text
// with a DEL in one string, which Go's encoder writes as it is, is refused as a
// whole, and U+0085 comes out as a space. A guest, or an end of a container, must
// not keep a status from being written by a byte in a name.
package applytext

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
)

// Wrap returns a transport that escapes the bodies of applies. It is for a client's configuration,
// see [k8s.io/client-go/rest.Config.Wrap].
func Wrap(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

// WrappedRoundTripper lets client-go find the transport behind this one.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || !isApply(r.Header.Get("Content-Type")) {
		return t.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err := r.Body.Close(); err != nil {
		return nil, fmt.Errorf("close the body of an apply: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the body of an apply: %w", err)
	}
	body = Escape(body)
	r = r.Clone(r.Context())
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body = io.NopCloser(bytes.NewReader(body))
	return t.next.RoundTrip(r)
}

func isApply(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == string(types.ApplyYAMLPatchType)
}

// Escape returns a JSON text in a form that a YAML parser reads as the same value: what YAML does
// not admit in a document is escaped, and JSON's escapes that YAML lacks are replaced by the
// characters. Keys of more than 1000 bytes remain a problem: no YAML parser reads them in JSON's
// form. The result for invalid JSON is invalid, too.
func Escape(text []byte) []byte {
	if !needed(text) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/8+16)
	for i := 0; i < len(text); {
		if text[i] == '\\' && i+1 < len(text) {
			n := 0
			out, n = escape(out, text[i:])
			i += n
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if forbidden(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, text[i:i+n]...)
		}
		i += n
	}
	return out
}

// escape copies the escape at the beginning of a text, and returns its length.
func escape(out, text []byte) ([]byte, int) {
	switch text[1] {
	case '/':
		return append(out, '/'), 2
	case 'u':
		high, ok1 := unit(text)
		low, ok2 := unit(text[min(6, len(text)):])
		if r := utf16.DecodeRune(high, low); ok1 && ok2 && r != utf8.RuneError {
			return utf8.AppendRune(out, r), 12
		}
		if ok1 && utf16.IsSurrogate(high) {
			return append(out, `\ufffd`...), 6 // as encoding/json reads it
		}
	}
	return append(out, text[:2]...), 2
}

// unit reads "\uXXXX".
func unit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// forbidden reports whether a character has another meaning, or none, in YAML (YAML 1.1 §4.1.1, and
// the parser in use). Their escapes all have four digits.
func forbidden(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

func needed(text []byte) bool {
	for i, c := range text {
		if c >= 0x7f || c == '\\' && i+1 < len(text) && (text[i+1] == '/' || text[i+1] == 'u') {
			return true
		}
	}
	return false
}
