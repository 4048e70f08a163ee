// Package yamltest writes YAML by the nodes of the YAML library, as package yamljson did once. It
// is for tests alone: what stands in files and ConfigMaps is not to change because it is written
// faster.
package yamltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxDepth is that of package yamljson.
const maxDepth = 100

// FromJSON writes a JSON value as block-style YAML.
func FromJSON(raw json.RawMessage) ([]byte, error) {
	node, err := Node(raw)
	if err != nil {
		return nil, err
	}
	return Encode(node)
}

// Encode writes a node with the usual indentation.
func Encode(node *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Node reads exactly one JSON value as a YAML node. Duplicate keys, floats out of range and invalid
// UTF-8 are errors.
func Node(raw json.RawMessage) (*yaml.Node, error) {
	if !utf8.Valid(raw) {
		// The decoder would silently replace the bytes.
		return nil, errors.New("is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	node, err := valueNode(dec, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has data after the JSON value")
	}
	return node, nil
}

func valueNode(dec *json.Decoder, depth int) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
		}
		if token == '{' {
			return objectNode(dec, depth)
		}
		return arrayNode(dec, depth)
	case string:
		return stringNode(token), nil
	case json.Number:
		return numberNode(string(token))
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(token)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}

func objectNode(dec *json.Decoder, depth int) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("unexpected %v instead of a key", token)
		}
		if seen[key] {
			return nil, fmt.Errorf("key %q appears twice", shorten(key))
		}
		seen[key] = true
		value, err := valueNode(dec, depth+1)
		if err != nil {
			return nil, at("."+shorten(key), err)
		}
		node.Content = append(node.Content, keyNode(key), value)
	}
	_, err := dec.Token() // the closing brace
	return node, err
}

func arrayNode(dec *json.Decoder, depth int) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for dec.More() {
		value, err := valueNode(dec, depth+1)
		if err != nil {
			return nil, at("["+strconv.Itoa(len(node.Content))+"]", err)
		}
		node.Content = append(node.Content, value)
	}
	_, err := dec.Token() // the closing bracket
	return node, err
}

// numberNode keeps the digits of a JSON number. A floating-point number must have a point and a
// signed exponent, or YAML 1.1 takes it for a string.
func numberNode(literal string) (*yaml.Node, error) {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(literal), "e")
	if !scientific && !strings.Contains(mantissa, ".") {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: literal}, nil
	}
	if _, err := strconv.ParseFloat(literal, 64); err != nil {
		return nil, fmt.Errorf("number %s is out of range", literal)
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if scientific {
		if !strings.HasPrefix(exponent, "+") && !strings.HasPrefix(exponent, "-") {
			exponent = "+" + exponent
		}
		mantissa += "e" + exponent
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: mantissa}, nil
}

// keyNode returns a string that stays on one line: a block scalar cannot be a key.
func keyNode(s string) *yaml.Node {
	node := stringNode(s)
	if node.Style == yaml.LiteralStyle {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// stringNode chooses a string's style: plain only where no YAML parser can take it for anything
// else, as a literal block if it has several lines that a block preserves, in double quotes
// otherwise.
func stringNode(s string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	switch {
	case plainSafe(s):
		node.Style = 0
	case literalSafe(s):
		node.Style = yaml.LiteralStyle
	}
	return node
}

// reserved are the words to which YAML 1.1 or 1.2 gives a meaning, in lower case.
var reserved = map[string]bool{
	"y": true, "yes": true, "true": true, "on": true,
	"n": true, "no": true, "false": true, "off": true,
	"null": true,
}

// plainSafe is stricter than YAML: it admits names, paths, addresses and sentences of plain words,
// and quotes everything doubtful. Restricting the first character excludes numbers, times, the
// merge key and all indicators.
func plainSafe(s string) bool {
	if s == "" || reserved[strings.ToLower(s)] {
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

// literalSafe reports whether a literal block gives s back byte for byte. A block has no escapes,
// takes its indentation from its first line, and parsers differ about line breaks other than \n and
// about lines of spaces at the ends.
func literalSafe(s string) bool {
	body := strings.TrimSuffix(s, "\n")
	if !strings.Contains(s, "\n") || body == "" || strings.IndexByte(" \t\n", body[0]) >= 0 || body[len(body)-1] == '\n' {
		return false
	}
	for _, r := range s {
		switch {
		case r == 0x2028, r == 0x2029, r == 0xfeff:
			return false
		case r == '\n', r == '\t', r >= ' ' && r <= '~', r >= 0xa0 && r <= 0xfffd:
		default:
			// Control characters, and those beyond the basic plane, which the YAML library only
			// writes as escapes.
			return false
		}
	}
	last := body[strings.LastIndexByte(body, '\n')+1:]
	return strings.TrimLeft(last, " \t") != ""
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
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
