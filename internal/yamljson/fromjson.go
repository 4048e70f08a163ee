package yamljson

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// FromJSON writes a JSON value as block-style YAML. Keys keep their order, numbers their digits,
// and strings that any YAML parser could take for something else are quoted. Duplicate keys, floats
// out of range and invalid UTF-8 are errors.
//
// The output equals the YAML library's for the same value, byte for byte: the contents of files and
// ConfigMaps must not change because they are written faster.
func FromJSON(raw json.RawMessage) ([]byte, error) {
	tokens, err := parse(raw)
	if err != nil {
		return nil, err
	}
	e := emitter{tokens: tokens, out: make([]byte, 0, 2*len(raw)+16)}
	e.root()
	return e.out, nil
}

// AppendMember appends a member of an object to the YAML of those before it. An object without any
// is {}.
func AppendMember(out []byte, key string, value json.RawMessage) ([]byte, error) {
	tokens, err := parse(value)
	if err != nil {
		return out, err
	}
	e := emitter{tokens: tokens, out: out}
	e.member(key, 0)
	return e.out, nil
}

// AppendText is AppendMember for a string.
func AppendText(out []byte, key, value string) []byte {
	e := emitter{tokens: []token{{kind: text, text: value}}, out: out}
	e.member(key, 0)
	return e.out
}

// emitter writes tokens. Each level is indented by two columns.
type emitter struct {
	tokens []token // those that are still to be written
	out    []byte
}

func (e *emitter) next() token {
	t := e.tokens[0]
	e.tokens = e.tokens[1:]
	return t
}

func (e *emitter) root() {
	if t := e.next(); t.size > 0 {
		e.block(t, 0, true)
	} else {
		e.scalar(t, 0)
	}
}

// block writes the content of a non-empty object or array; begun reports whether its first line has
// been begun.
func (e *emitter) block(t token, indent int, begun bool) {
	for range t.size {
		if !begun {
			e.spaces(indent)
		}
		begun = false
		if t.kind == object {
			e.member(e.next().text, indent)
			continue
		}
		e.out = append(e.out, '-')
		e.inLine(indent)
	}
}

// longKey is the maximum length of a key, in bytes, without an explicit key indicator.
const longKey = 128

// member writes a key, for which the line is begun, and its value.
func (e *emitter) member(key string, indent int) {
	plain := plainSafe(key)
	long := len(key) > longKey || !plain && breaks(key)
	if long {
		e.out = append(e.out, "? "...)
	}
	if plain {
		e.out = append(e.out, key...)
	} else {
		e.quoted(key) // a block scalar cannot be a key
	}
	if long {
		e.out = append(e.out, '\n')
		e.spaces(indent)
		e.out = append(e.out, ':')
		e.inLine(indent)
		return
	}
	e.out = append(e.out, ':')
	if t := e.tokens[0]; t.size > 0 {
		e.out = append(e.out, '\n')
		e.block(e.next(), indent+2, false)
		return
	}
	e.inLine(indent)
}

// inLine writes a value that begins in the present line.
func (e *emitter) inLine(indent int) {
	e.out = append(e.out, ' ')
	if t := e.next(); t.size > 0 {
		e.block(t, indent+2, true)
	} else {
		e.scalar(t, indent)
	}
}

func (e *emitter) scalar(t token, indent int) {
	switch {
	case t.kind == object:
		e.out = append(e.out, "{}"...)
	case t.kind == array:
		e.out = append(e.out, "[]"...)
	case t.kind == literal || plainSafe(t.text):
		e.out = append(e.out, t.text...)
	case literalSafe(t.text):
		e.lines(t.text, indent+2)
		return
	default:
		e.quoted(t.text)
	}
	e.out = append(e.out, '\n')
}

func (e *emitter) lines(s string, indent int) {
	e.out = append(e.out, '|')
	if !strings.HasSuffix(s, "\n") {
		e.out = append(e.out, '-')
	}
	e.out = append(e.out, '\n')
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		if line != "" {
			e.spaces(indent)
		}
		e.out = append(e.out, line...)
		e.out = append(e.out, '\n')
	}
}

const manySpaces = "                                                                "

func (e *emitter) spaces(n int) {
	for ; n > len(manySpaces); n -= len(manySpaces) {
		e.out = append(e.out, manySpaces...)
	}
	e.out = append(e.out, manySpaces[:n]...)
}

// escapes are the characters that have an escape of their own in double quotes.
var escapes = map[rune]byte{
	0: '0', 7: 'a', 8: 'b', 9: 't', 10: 'n', 11: 'v', 12: 'f', 13: 'r', 27: 'e', '"': '"', '\\': '\\',
	0x85: 'N', 0xa0: '_', 0x2028: 'L', 0x2029: 'P',
}

const byteOrderMark = '\ufeff'

// quoted writes a string in double quotes, with escapes for everything that is not printable in
// YAML 1.1. If it begins with a byte order mark, the library escapes everything.
func (e *emitter) quoted(s string) {
	e.out = append(e.out, '"')
	first, _ := utf8.DecodeRuneInString(s)
	done := 0
	for i, r := range s {
		if r >= ' ' && r <= '~' && r != '"' && r != '\\' && first != byteOrderMark {
			continue
		}
		if first != byteOrderMark && (r >= 0xa0 && r < byteOrderMark && r != 0x2028 && r != 0x2029 || r > byteOrderMark && r <= 0xfffd) {
			continue
		}
		e.out = append(append(e.out, s[done:i]...), '\\')
		done = i + utf8.RuneLen(r)
		if c, ok := escapes[r]; ok {
			e.out = append(e.out, c)
			continue
		}
		letter, digits := byte('x'), 2
		switch {
		case r > 0xffff:
			letter, digits = 'U', 8
		case r > 0xff:
			letter, digits = 'u', 4
		}
		e.out = append(e.out, letter)
		for digits--; digits >= 0; digits-- {
			e.out = append(e.out, "0123456789ABCDEF"[r>>(4*digits)&15])
		}
	}
	e.out = append(append(e.out, s[done:]...), '"')
}

func breaks(s string) bool { return strings.ContainsAny(s, "\r\n\u0085\u2028\u2029") }

// reserved reports whether YAML 1.1 or 1.2 gives a meaning to a word, ignoring case.
func reserved(word string) bool {
	if len(word) > len("false") {
		return false
	}
	lower := strings.ToLower(word)
	_, is := Truth(lower)
	return is || lower == "null"
}

// plainSafe reports whether no YAML parser can take a string for anything else. It is stricter than
// YAML: it admits names, paths, addresses and sentences of plain words, and quotes everything
// doubtful. Restricting the first character excludes numbers, times, the merge key and all
// indicators.
func plainSafe(s string) bool {
	if s == "" || reserved(s) {
		return false
	}
	if c := s[0]; !isLetter(c) && c != '/' && c != '_' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case isLetter(c), c >= '0' && c <= '9', strings.IndexByte("/_.@%+=,;()-", c) >= 0:
		case c == ':', c == ' ':
			// A colon before a space ends a key, a space before # starts a comment, and a space at
			// the end is dropped.
			if i+1 == len(s) || s[i+1] == ' ' {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// literalSafe reports whether a literal block gives s, of several lines, back byte for byte. A
// block has no escapes, takes its indentation from its first line, and parsers differ about line
// breaks other than \n and about spaces and lines of spaces at the ends.
func literalSafe(s string) bool {
	body := strings.TrimSuffix(s, "\n")
	if !strings.Contains(s, "\n") || body == "" || strings.IndexByte(" \t\n", body[0]) >= 0 || body[len(body)-1] == '\n' {
		return false
	}
	if strings.Contains(s, " \n") || strings.HasSuffix(s, " ") {
		return false
	}
	for _, r := range s {
		switch {
		case r == 0x2028, r == 0x2029, r == byteOrderMark:
			return false
		case r == '\n', r == '\t', r >= ' ' && r <= '~', r >= 0xa0 && r <= 0xfffd:
		default:
			// Control characters, and those beyond the basic plane, which are only written as
			// escapes.
			return false
		}
	}
	last := body[strings.LastIndexByte(body, '\n')+1:]
	return strings.TrimLeft(last, " \t") != ""
}
