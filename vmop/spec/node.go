package spec

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/vmop/sdk/internal/plainjson"
)

type nodeKind int

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	stringNode
	mapNode
	listNode
)

// String names the kind as people call it in a manifest.
func (k nodeKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a mapping", "a list"}[k]
}

// +kubebuilder:object:generate=false

// node is a JSON value that knows where it was written. Nodes are not changed
// once they are made; aliases share them.
type node struct {
	kind nodeKind
	line int
	// text is the value of a scalar: the string itself, or the JSON form of
	// anything else.
	text string
	// source is the text of the file at that place, for messages.
	source  string
	entries []entry
	items   []*node
	// weight is about the number of bytes of the JSON form, aliases expanded.
	weight int
}

// +kubebuilder:object:generate=false
type entry struct {
	key    string
	line   int
	value  *node
	merged bool
}

func (n *node) get(key string) *node {
	if e := n.entry(key); e != nil {
		return e.value
	}
	return nil
}

func (n *node) entry(key string) *entry {
	if n == nil || n.kind != mapNode {
		return nil
	}
	if i := slices.IndexFunc(n.entries, func(e entry) bool { return e.key == key }); i >= 0 {
		return &n.entries[i]
	}
	return nil
}

func (n *node) stringAt(keys ...string) string {
	for _, k := range keys {
		n = n.get(k)
	}
	if n == nil || n.kind != stringNode {
		return ""
	}
	return n.text
}

// json appends the JSON form of the node, with the keys in the order in which
// they were written.
func (n *node) json(b *bytes.Buffer) {
	switch n.kind {
	case stringNode:
		b.Write(plainjson.Quote(n.text))
	case mapNode:
		b.WriteByte('{')
		for i, e := range n.entries {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(plainjson.Quote(e.key))
			b.WriteByte(':')
			e.value.json(b)
		}
		b.WriteByte('}')
	case listNode:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.json(b)
		}
		b.WriteByte(']')
	default:
		b.WriteString(n.text)
	}
}

func (n *node) bytes() []byte {
	var b bytes.Buffer
	n.json(&b)
	return b.Bytes()
}

// find returns the line of the field at a path, and whether it is there at
// all. If it is not, the line is that of the nearest field around it.
func (n *node) find(path string) (line int, found bool) {
	line = n.line
	for path != "" {
		next, nextLine, rest := n.step(path)
		if next == nil {
			return line, false
		}
		n, line, path = next, nextLine, rest
	}
	return line, true
}

// step follows the first part of a path: ".name", "name", "[3]" or "[key]".
func (n *node) step(path string) (next *node, line int, rest string) {
	if inner, ok := strings.CutPrefix(path, "["); ok {
		if n.kind == listNode {
			index, rest, _ := strings.Cut(inner, "]")
			i, err := strconv.Atoi(index)
			if err != nil || i < 0 || i >= len(n.items) {
				return nil, 0, ""
			}
			return n.items[i], n.items[i].line, rest
		}
		// A key may itself contain a bracket, so ask the keys.
		for _, e := range n.entries {
			if rest, ok := strings.CutPrefix(inner, e.key+"]"); ok {
				return e.value, e.line, rest
			}
		}
		return nil, 0, ""
	}
	name := strings.TrimPrefix(path, ".")
	if i := strings.IndexAny(name, ".["); i >= 0 {
		name, rest = name[:i], name[i:]
	}
	if e := n.entry(name); e != nil {
		return e.value, e.line, rest
	}
	return nil, 0, ""
}
