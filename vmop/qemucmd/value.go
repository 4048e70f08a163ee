package qemucmd

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is the value of a property of an [Option]. It is sealed: each kind knows both forms that
// QEMU reads (key=value text and JSON), so that no caller quotes by hand.
type Value interface {
	// appendText appends the value as it stands behind "key=".
	appendText(b []byte) []byte
	appendJSON(b []byte) []byte
}

type (
	// Str is literal text.
	Str string
	// Int is a number.
	Int int64
	// Bool is "on" or "off" in text, true or false in JSON.
	Bool bool
	// Ref names the ID of another option of the same command.
	Ref string
	// Bus names a bus: one of the machine's own ("pcie.0", "ide.2") or that of a device of the
	// command, its ID followed by a dot and a number ("usb.0").
	Bus string
	// FD is a file descriptor in the QEMU process. In QEMU's schema it is a string, because it may
	// also be the name of a descriptor sent over QMP.
	FD int
	// Null is JSON's null; it has a JSON form only.
	Null struct{}
	// List is a list; it has a JSON form only.
	List []Value
	// Object is a group of properties; it has a JSON form only.
	Object []Prop
)

// Prop is a property of an [Option]. Properties keep their order.
type Prop struct {
	Key   string
	Value Value
}

// appendEscaped doubles the commas: QEMU ends a value at a single comma, and takes everything else
// in it literally.
func appendEscaped(b []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, ',')
		if i < 0 {
			return append(b, s...)
		}
		b = append(append(b, s[:i+1]...), ',')
		s = s[i+1:]
	}
}

const hexDigits = "0123456789abcdef"

// appendJSONString appends s as a JSON string. Unlike encoding/json it does not escape "<", ">" and
// "&", so that command lines stay readable.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0 // s[:done] is appended
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[done:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
			i++
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
			i++
		default:
			// Invalid UTF-8 becomes U+FFFD; Build refuses such text.
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
		}
		done = i
	}
	return append(append(b, s[done:]...), '"')
}

// textBound is an upper bound of a string's length in either form: in JSON, a control character
// takes six bytes and an invalid byte three.
func textBound(s string) int { return 6*len(s) + 2 }

func propBound(p *Prop) int { return textBound(p.Key) + 2 + valueBound(p.Value) }

func valueBound(v Value) int {
	switch v := v.(type) {
	case Str:
		return textBound(string(v))
	case Ref:
		return textBound(string(v))
	case Bus:
		return textBound(string(v))
	case List:
		n := 2
		for i := range v {
			n += valueBound(v[i]) + 1
		}
		return 2 * n // text doubles the commas
	case Object:
		n := 2
		for i := range v {
			n += propBound(&v[i])
		}
		return 2 * n // text doubles the commas
	}
	return 32 // a number or a word
}

func (v Str) appendText(b []byte) []byte { return appendEscaped(b, string(v)) }
func (v Str) appendJSON(b []byte) []byte { return appendJSONString(b, string(v)) }

func (v Ref) appendText(b []byte) []byte { return appendEscaped(b, string(v)) }
func (v Ref) appendJSON(b []byte) []byte { return appendJSONString(b, string(v)) }

func (v Bus) appendText(b []byte) []byte { return appendEscaped(b, string(v)) }
func (v Bus) appendJSON(b []byte) []byte { return appendJSONString(b, string(v)) }

func (v Int) appendText(b []byte) []byte { return strconv.AppendInt(b, int64(v), 10) }
func (v Int) appendJSON(b []byte) []byte { return strconv.AppendInt(b, int64(v), 10) }

func (v FD) appendText(b []byte) []byte { return strconv.AppendInt(b, int64(v), 10) }
func (v FD) appendJSON(b []byte) []byte {
	return append(strconv.AppendInt(append(b, '"'), int64(v), 10), '"')
}

func (v Bool) appendText(b []byte) []byte {
	if v {
		return append(b, "on"...)
	}
	return append(b, "off"...)
}

func (v Bool) appendJSON(b []byte) []byte { return strconv.AppendBool(b, bool(v)) }

func (Null) appendText(b []byte) []byte { return append(b, "null"...) }
func (Null) appendJSON(b []byte) []byte { return append(b, "null"...) }

// appendText of a list and of an object give their JSON, escaped. No option of this package uses
// it: QEMU has no text form for them.
func (v List) appendText(b []byte) []byte { return appendEscaped(b, string(v.appendJSON(nil))) }

func (v List) appendJSON(b []byte) []byte {
	b = append(b, '[')
	for i, e := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.appendJSON(b)
	}
	return append(b, ']')
}

func (v Object) appendText(b []byte) []byte { return appendEscaped(b, string(v.appendJSON(nil))) }

func (v Object) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, p := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSONString(b, p.Key)
		b = append(b, ':')
		b = p.Value.appendJSON(b)
	}
	return append(b, '}')
}

// String returns the number in decimal.
func (v Int) String() string { return strconv.FormatInt(int64(v), 10) }
