package yamljson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// MaxAliased limits what the aliases of a document may expand to, in bytes of JSON: a few lines of
// YAML can refer to each other to make billions of nodes, or to one long text a thousand times.
// Without aliases the output is at most eight times the input.
const MaxAliased = 256 << 10

// maxDepth limits nesting, and with it the stack.
const maxDepth = 1000

// jsonNumber is JSON's grammar of numbers (RFC 8259 §6).
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// ToJSON converts one YAML document to JSON. Keys keep their order; duplicate keys, keys that are
// not scalars, several documents, and numbers that JSON cannot represent are errors that name the
// line. An empty document is null.
func ToJSON(data []byte) (json.RawMessage, error) {
	doc, err := Decode(data)
	if err != nil {
		return nil, err
	}
	return NodeToJSON(doc)
}

// NodeToJSON is ToJSON for a node that is already parsed.
func NodeToJSON(n *yaml.Node) (json.RawMessage, error) {
	w := writer{}
	if err := w.node(n, 0); err != nil {
		return nil, err
	}
	return w.buf.Bytes(), nil
}

// Canonical writes a JSON value in its canonical spelling: order and numbers as they are, strings
// escaped no more than needed.
func Canonical(raw json.RawMessage) (json.RawMessage, error) {
	tokens, err := parse(raw)
	if err != nil {
		return nil, err
	}
	w := writer{}
	w.buf.Grow(len(raw))
	w.tokens(tokens)
	return w.buf.Bytes(), nil
}

// tokens writes the first value of some, and returns the rest.
func (w *writer) tokens(all []token) []token {
	t, rest := all[0], all[1:]
	switch t.kind {
	case text:
		w.string(t.text)
	case literal:
		w.buf.WriteString(t.text)
	case array:
		w.buf.WriteByte('[')
		for i := range t.size {
			if i > 0 {
				w.buf.WriteByte(',')
			}
			rest = w.tokens(rest)
		}
		w.buf.WriteByte(']')
	case object:
		w.buf.WriteByte('{')
		for i := range t.size {
			if i > 0 {
				w.buf.WriteByte(',')
			}
			w.string(rest[0].text)
			w.buf.WriteByte(':')
			rest = w.tokens(rest[1:])
		}
		w.buf.WriteByte('}')
	}
	return rest
}

type writer struct {
	buf bytes.Buffer
	// aliases is the number of aliases around the present node. The output of the outermost begins
	// at start; aliased is the length of the output of earlier ones.
	aliases, start, aliased int
}

// room refuses output that would exceed the limit of aliases, before it is written.
func (w *writer) room(n *yaml.Node) error {
	size := w.aliased
	if w.aliases > 0 {
		size += w.buf.Len() - w.start + len(n.Value)
	}
	if size > MaxAliased {
		return fmt.Errorf("line %d: the aliases of the document expand too far, to more than %d KiB; write the values out instead", n.Line, MaxAliased>>10)
	}
	return nil
}

// alias writes the value that an alias refers to.
func (w *writer) alias(n *yaml.Node, depth int) error {
	if w.aliases == 0 {
		w.start = w.buf.Len()
	}
	w.aliases++
	if err := w.node(n.Alias, depth+1); err != nil {
		return err
	}
	if w.aliases--; w.aliases == 0 {
		w.aliased += w.buf.Len() - w.start
	}
	return nil
}

func (w *writer) node(n *yaml.Node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("line %d: the document is nested deeper than %d levels", n.Line, maxDepth)
	}
	if err := w.room(n); err != nil {
		return err
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return w.node(n.Content[0], depth+1)
	case yaml.AliasNode:
		return w.alias(n, depth)
	case yaml.SequenceNode:
		w.buf.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				w.buf.WriteByte(',')
			}
			if err := w.node(c, depth+1); err != nil {
				return err
			}
		}
		w.buf.WriteByte(']')
		return nil
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.ScalarNode:
		return w.scalar(n)
	}
	return fmt.Errorf("line %d: unexpected YAML node", n.Line)
}

func (w *writer) mapping(n *yaml.Node, depth int) error {
	seen := map[string]int{}
	w.buf.WriteByte('{')
	first := true
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := Target(n.Content[i]), n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key must be a plain value", k.Line)
		}
		if isMerge(k) {
			return fmt.Errorf("line %d: merge keys (<<) are not supported here", k.Line)
		}
		if line, dup := seen[k.Value]; dup {
			return fmt.Errorf("line %d: duplicate key %q, first on line %d", k.Line, k.Value, line)
		}
		seen[k.Value] = k.Line
		// A key may be an alias, too.
		if n.Content[i] != k {
			w.aliased += len(k.Value)
		}
		if err := w.room(k); err != nil {
			return err
		}
		if !first {
			w.buf.WriteByte(',')
		}
		first = false
		w.string(k.Value)
		w.buf.WriteByte(':')
		if err := w.node(v, depth+1); err != nil {
			return err
		}
	}
	w.buf.WriteByte('}')
	return nil
}

func (w *writer) string(s string) {
	if simple(s) {
		w.buf.WriteByte('"')
		w.buf.WriteString(s)
		w.buf.WriteByte('"')
		return
	}
	enc := json.NewEncoder(&w.buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	w.buf.Truncate(w.buf.Len() - 1)
}

// simple reports whether a JSON string needs no escapes.
func simple(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (w *writer) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.buf.WriteString("null")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return err
		}
		w.buf.WriteString(strconv.FormatBool(b))
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			w.buf.WriteString(n.Value)
			return nil
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return err
		}
		if f, ok := v.(float64); ok {
			if math.IsInf(f, 0) || math.IsNaN(f) {
				return fmt.Errorf("line %d: %s is not a number that JSON can hold", n.Line, n.Value)
			}
			w.buf.WriteString(strconv.FormatFloat(f, 'g', -1, 64))
			return nil
		}
		fmt.Fprintf(&w.buf, "%d", v)
	case "!!binary":
		return fmt.Errorf("line %d: binary values are not supported", n.Line)
	default:
		w.string(n.Value)
	}
	return nil
}
