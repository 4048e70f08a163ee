package yamljson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxDepth limits the nesting of objects and arrays in what is written. It is far more than is
// useful and keeps within the recursion limits of the parsers that read it.
const MaxDepth = 100

type kind byte

const (
	object kind = iota
	array
	text
	literal // a number, true, false or null
)

// token is one value of a JSON document, or a key, which precedes its value. The tokens of an
// object's or array's content follow its own.
type token struct {
	// text is an unescaped string, or a literal as YAML has it.
	text string
	// size is the number of items of an array, or of members of an object.
	size int
	kind kind
}

// parse reads exactly one JSON value. Duplicate keys, floats out of range and invalid UTF-8 are
// errors. It avoids json.Decoder, whose allocations for every string and number were most of the
// cost of writing a runner's configuration.
func parse(raw json.RawMessage) ([]token, error) {
	if !utf8.Valid(raw) {
		// The decoder would silently replace the bytes.
		return nil, errors.New("is not valid UTF-8")
	}
	p := parser{text: string(raw), tokens: make([]token, 0, len(raw)/16+4)}
	if err := p.value(0); err != nil {
		return nil, err
	}
	if p.next() != 0 || p.at < len(p.text) {
		return nil, errors.New("has data after the JSON value")
	}
	return p.tokens, nil
}

// Check reports what prevents a JSON value from being written as YAML.
func Check(raw json.RawMessage) error {
	_, err := parse(raw)
	return err
}

type parser struct {
	text   string
	at     int
	tokens []token
}

// next returns the next character that is not a space, 0 at the end.
func (p *parser) next() byte {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (p *parser) unexpected(want string) error {
	if p.at >= len(p.text) {
		return io.ErrUnexpectedEOF
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return fmt.Errorf("invalid character %q, want %s", r, want)
}

func (p *parser) value(depth int) error {
	switch c := p.next(); {
	case c == '{' || c == '[':
		if depth == MaxDepth {
			return fmt.Errorf("nested deeper than %d levels", MaxDepth)
		}
		p.at++
		if c == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case c == '"':
		s, err := p.string()
		p.tokens = append(p.tokens, token{kind: text, text: s})
		return err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, word := range [...]string{"null", "true", "false"} {
		if strings.HasPrefix(p.text[p.at:], word) {
			p.at += len(word)
			p.tokens = append(p.tokens, token{kind: literal, text: word})
			return nil
		}
	}
	return p.unexpected("a value")
}

// few is how many keys are compared with each other; more are looked up in a map.
const few = 16

func (p *parser) object(depth int) error {
	self := len(p.tokens)
	p.tokens = append(p.tokens, token{kind: object})
	var first [few]string
	keys, seen := first[:0], map[string]bool(nil)
	for c := p.next(); c != '}'; c = p.next() {
		if len(keys) > 0 {
			if c != ',' {
				return p.unexpected("a comma or }")
			}
			p.at++
		}
		if p.next() != '"' {
			return p.unexpected("a key")
		}
		key, err := p.string()
		if err != nil {
			return err
		}
		if known(&seen, keys, key) {
			return fmt.Errorf("key %q appears twice", shorten(key))
		}
		keys = append(keys, key)
		p.tokens = append(p.tokens, token{kind: text, text: key})
		if p.next() != ':' {
			return p.unexpected("a colon")
		}
		p.at++
		if err := p.value(depth + 1); err != nil {
			return at("."+shorten(key), err)
		}
	}
	p.at++
	p.tokens[self].size = len(keys)
	return nil
}

// known reports whether a key is among others. If there are many, they are added to seen.
func known(seen *map[string]bool, keys []string, key string) bool {
	if len(keys) < few {
		for _, k := range keys {
			if k == key {
				return true
			}
		}
		return false
	}
	if *seen == nil {
		*seen = make(map[string]bool, 2*few)
		for _, k := range keys {
			(*seen)[k] = true
		}
	}
	was := (*seen)[key]
	(*seen)[key] = true
	return was
}

func (p *parser) array(depth int) error {
	self, size := len(p.tokens), 0
	p.tokens = append(p.tokens, token{kind: array})
	for c := p.next(); c != ']'; c = p.next() {
		if size > 0 {
			if c != ',' {
				return p.unexpected("a comma or ]")
			}
			p.at++
		}
		if err := p.value(depth + 1); err != nil {
			return at("["+strconv.Itoa(size)+"]", err)
		}
		size++
	}
	p.at++
	p.tokens[self].size = size
	return nil
}

// string reads a string, whose quote is the next character.
func (p *parser) string() (string, error) {
	start, escaped := p.at, false
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			if !escaped {
				return p.text[start+1 : p.at-1], nil
			}
			var s string
			err := json.Unmarshal([]byte(p.text[start:p.at]), &s)
			return s, err
		case c == '\\':
			escaped = true
			p.at++
		case c < ' ':
			return "", p.unexpected("none below U+0020 in a string")
		}
	}
	return "", io.ErrUnexpectedEOF
}

// number reads a number by JSON's grammar (RFC 8259 §6).
func (p *parser) number() error {
	start := p.at
	p.skip("-")
	if !p.skip("0") && !p.digits() {
		return p.unexpected("a digit")
	}
	whole := true
	if p.skip(".") {
		if whole = false; !p.digits() {
			return p.unexpected("a digit")
		}
	}
	if p.skip("eE") {
		p.skip("+-")
		if whole = false; !p.digits() {
			return p.unexpected("a digit")
		}
	}
	number := p.text[start:p.at]
	if !whole {
		var err error
		if number, err = float(number); err != nil {
			return err
		}
	}
	p.tokens = append(p.tokens, token{kind: literal, text: number})
	return nil
}

// skip consumes the next character if it is one of some.
func (p *parser) skip(some string) bool {
	if p.at < len(p.text) && strings.IndexByte(some, p.text[p.at]) >= 0 {
		p.at++
		return true
	}
	return false
}

func (p *parser) digits() bool {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at > start
}

// float keeps the digits of a floating-point number. It must have a point and a signed exponent, or
// YAML 1.1 takes it for a string.
func float(literal string) (string, error) {
	if _, err := strconv.ParseFloat(literal, 64); err != nil {
		return "", fmt.Errorf("number %s is out of range", literal)
	}
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(literal), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if scientific {
		if !strings.HasPrefix(exponent, "+") && !strings.HasPrefix(exponent, "-") {
			exponent = "+" + exponent
		}
		mantissa += "e" + exponent
	}
	return mantissa, nil
}

// placed is an error with its place in the value. The path is built on the way out: building it on
// the way in would cost its length for each value, which the author of a long key chooses.
type placed struct {
	path string
	err  error
}

func (p *placed) Error() string { return strings.TrimPrefix(p.path, ".") + ": " + p.err.Error() }
func (p *placed) Unwrap() error { return p.err }

func at(part string, err error) error {
	if p, ok := err.(*placed); ok {
		p.path = part + p.path
		return p
	}
	return &placed{path: part, err: err}
}

// shorten keeps keys in messages readable.
func shorten(key string) string {
	const most = 64
	if len(key) <= most {
		return key
	}
	return strings.ToValidUTF8(key[:most], "") + "…"
}
