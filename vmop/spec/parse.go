package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vmop/sdk/internal/yamljson"
	"go.yaml.in/yaml/v3"
)

// +kubebuilder:object:generate=false
type document struct {
	raw  []byte
	line int   // of the first line of raw
	root *node // nil if the document is empty or no YAML at all
	// faults are what is wrong with it before its fields are checked.
	faults []fault
	// expanded is true if aliases make it too big to be gone through.
	expanded bool
}

// +kubebuilder:object:generate=false

// fault is a problem whose object is not known yet.
type fault struct {
	line    int
	path    string
	message string
	missing bool   // a required field is absent, and nothing was written in a wrong way
	unknown bool   // there is no such field
	meant   string // the field that an unknown one may be, or empty
}

// Limits on what aliases and merge keys may blow a document up to. Kubernetes
// takes requests of up to 3 MiB; beyond these a file is an attack or a mistake.
const (
	maxExpandedBytes = 4 << 20
	maxMergedKeys    = 100_000
)

// maxFaults is how many problems of one object are reported apart. The author of more of them
// corrects these first; an attacker gets no report of many megabytes.
const maxFaults = 500

// +kubebuilder:object:generate=false
type faults struct {
	list []fault
	more int // those that were left out
}

func (f *faults) add(next fault) {
	if len(f.list) == maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, next)
}

// all is the list, with a last one that counts those that were left out.
func (f *faults) all(line int) []fault {
	if f.more == 0 {
		return f.list
	}
	return append(slices.Clip(f.list), fault{line: line, message: fmt.Sprintf("has %d more problems; correct these %d first", f.more, maxFaults)})
}

// +kubebuilder:object:generate=false

// place is where a value stands. Its path is only put together when something is
// wrong: carried along as text, a long key would be copied for each value inside
// of it.
type place struct {
	up    *place
	key   string
	index int // of an item; the key counts if it is negative
}

func (p *place) under(key string) *place { return &place{up: p, key: key, index: -1} }
func (p *place) item(index int) *place   { return &place{up: p, index: index} }

// path is the path as [child] writes it, "" for the root, which is nil.
func (p *place) path() string {
	var parts []*place
	for ; p != nil; p = p.up {
		parts = append(parts, p)
	}
	path := ""
	for _, part := range slices.Backward(parts) {
		if part.index >= 0 {
			path += fmt.Sprintf("[%d]", part.index)
		} else {
			path = child(path, part.key)
		}
	}
	return path
}

func parseYAML(doc document) document {
	y, err := decodeYAML(doc.raw)
	if err != nil {
		at := errorLine(doc.raw, err)
		doc.faults = []fault{{line: doc.line + at, message: syntaxMessage(doc.raw, err, at)}}
		return doc
	}
	if y == nil {
		return doc
	}
	b := &builder{offset: doc.line - 1, seen: map[*yaml.Node]*node{}}
	root := b.build(y, nil)
	if root != nil && root.weight > maxExpandedBytes+4*len(doc.raw) {
		b.fault(root.line, nil, fmt.Sprintf("the aliases of this document expand to more than %d MiB; write the values out instead", maxExpandedBytes>>20))
		doc.expanded = true
	}
	doc.root, doc.faults = root, b.faults.all(doc.line)
	return doc
}

// decodeYAML returns the root of the only document in data, or nil if it is
// empty.
func decodeYAML(data []byte) (*yaml.Node, error) {
	doc, err := yamljson.Decode(data)
	if second := (*yamljson.SecondDocumentError)(nil); errors.As(err, &second) {
		return nil, errors.New("yaml: found a second document without a line \"---\" before it")
	}
	if err != nil || len(doc.Content) == 0 {
		return nil, err
	}
	return doc.Content[0], nil
}

// errorLine returns the line of a syntax error, counted from 0. The parser's
// own number is often that of the construct around the error, so the line is
// searched for: it is the one behind the longest beginning of the document
// that does not have this error.
func errorLine(data []byte, err error) int {
	var ends []int // ends[i] is the end of line i
	for i, c := range data {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		ends = append(ends, len(data))
	}
	good, bad := 0, len(ends)
	for bad-good > 1 {
		mid := (good + bad) / 2
		if _, e := decodeYAML(data[:ends[mid-1]]); e != nil && e.Error() == err.Error() {
			bad = mid
		} else {
			good = mid
		}
	}
	return good
}

func syntaxMessage(data []byte, err error, line int) string {
	m := strings.TrimPrefix(err.Error(), "yaml: ")
	if _, rest, ok := strings.Cut(m, ": "); ok && strings.HasPrefix(m, "line ") {
		m = rest
	}
	lines := bytes.Split(data, []byte("\n"))
	if line < len(lines) && bytes.HasPrefix(bytes.TrimLeft(lines[line], " "), []byte("\t")) {
		m += " (the line is indented with a tab; YAML takes spaces only)"
	}
	return "is not valid YAML: " + m
}

// +kubebuilder:object:generate=false
type builder struct {
	offset int // lines before the document
	// seen has a node for everything that was built, nil while it is in the
	// making.
	seen   map[*yaml.Node]*node
	merged int
	faults faults
}

func (b *builder) fault(line int, at *place, message string) {
	b.faults.add(fault{line: line, path: at.path(), message: message})
}

// build returns nil if something is wrong, which is then among the faults.
func (b *builder) build(y *yaml.Node, at *place) *node {
	if n, ok := b.seen[y]; ok {
		if n == nil {
			b.fault(y.Line+b.offset, at, "the alias stands inside of what it repeats")
		}
		return n
	}
	b.seen[y] = nil
	var n *node
	switch y.Kind {
	case yaml.AliasNode:
		n = b.build(y.Alias, at)
	case yaml.MappingNode:
		n = b.mapping(y, at)
	case yaml.SequenceNode:
		n = b.sequence(y, at)
	case yaml.ScalarNode:
		var err error
		if n, err = scalar(y); err != nil {
			b.fault(y.Line+b.offset, at, err.Error())
			n = &node{kind: nullNode, text: "null", line: y.Line}
		}
		n.line += b.offset
		n.weight = len(n.text) + 1
	}
	if n == nil {
		n = &node{kind: nullNode, text: "null", line: y.Line + b.offset, weight: 1}
	}
	b.seen[y] = n
	return n
}

func (b *builder) sequence(y *yaml.Node, at *place) *node {
	n := &node{kind: listNode, line: y.Line + b.offset, weight: 2}
	for i, c := range y.Content {
		item := b.build(c, at.item(i))
		n.items = append(n.items, item)
		n.addWeight(item.weight)
	}
	return n
}

func (b *builder) mapping(y *yaml.Node, at *place) *node {
	n := &node{kind: mapNode, line: y.Line + b.offset, weight: 2}
	index := map[string]int{}
	add := func(e entry) {
		index[e.key] = len(n.entries)
		n.entries = append(n.entries, e)
		n.addWeight(len(e.key) + 2 + e.value.weight)
	}
	mergedBefore := false
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		line := k.Line + b.offset
		if isMerge(k) {
			if mergedBefore {
				b.fault(line, at, "the key << is there twice; give it a list instead: << : [*a, *b]")
				continue
			}
			mergedBefore = true
			for _, e := range b.merge(v, at) {
				if first, ok := index[e.key]; ok {
					b.fault(n.entries[first].line, at.under(e.key), fmt.Sprintf(
						"is set before << and also by it; kubectl and YAML disagree on which value counts, so move << (line %d) to the first line of the mapping", line))
					continue
				}
				add(e)
			}
			continue
		}
		key, err := b.key(k)
		if err != nil {
			b.fault(line, at, err.Error())
			continue
		}
		value := b.build(v, at.under(key))
		e := entry{key: key, line: line, value: value}
		if first, ok := index[key]; ok {
			if !n.entries[first].merged {
				b.fault(line, at.under(key), fmt.Sprintf("is there twice, first in line %d; remove one", n.entries[first].line))
				continue
			}
			n.addWeight(value.weight)
			n.entries[first] = e
			continue
		}
		add(e)
	}
	return n
}

func (n *node) addWeight(w int) {
	// Saturate instead of overflowing: aliases can square it at every level.
	const most = 1 << 40
	n.weight = min(n.weight+w, most)
}

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && !yamljson.Quoted(k)
}

func (b *builder) key(k *yaml.Node) (string, error) {
	if k = yamljson.Target(k); k.Kind != yaml.ScalarNode {
		return "", errors.New("a key must be a plain text, not a list or a mapping")
	}
	n, err := scalar(k)
	if err != nil {
		return "", fmt.Errorf("the key %w", err)
	}
	return keyText(n)
}

// merge returns the entries that a merge key brings in. In a list the earlier
// mapping counts.
func (b *builder) merge(y *yaml.Node, at *place) []entry {
	n := b.build(y, at)
	sources := []*node{n}
	if n.kind == listNode {
		sources = n.items
	}
	var out []entry
	have := map[string]bool{}
	for _, s := range sources {
		if s.kind != mapNode {
			b.fault(n.line, at, fmt.Sprintf("the key << has %s; it takes a mapping or a list of mappings", s.kind))
			continue
		}
		for _, e := range s.entries {
			if have[e.key] {
				continue
			}
			if b.merged++; b.merged > maxMergedKeys {
				if b.merged == maxMergedKeys+1 {
					b.fault(n.line, at, fmt.Sprintf("the keys << of this document bring in more than %d keys; write the values out instead", maxMergedKeys))
				}
				return out
			}
			have[e.key] = true
			e.merged = true
			out = append(out, e)
		}
	}
	return out
}

// child returns the path of a key: ".name" where that is unmistakable, else
// "[name]", as for labels.
func child(path, key string) string {
	key = shortKey(key)
	if key == "" || strings.ContainsAny(key, ".[]/ ") {
		return path + "[" + key + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// shortKey cuts keys that are longer than any that Kubernetes takes.
func shortKey(key string) string {
	const most = 320
	if len(key) <= most {
		return key
	}
	return strings.ToValidUTF8(key[:most], "") + "…"
}

// parseJSON parses a stream of JSON values. The error is a syntax error; the
// documents before it are returned.
func parseJSON(data []byte) (docs []document, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return docs, nil
		} else if err != nil {
			offset := len(data)
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				offset = min(max(int(syntax.Offset)-1, 0), len(data))
			}
			return docs, &jsonError{line: 1 + bytes.Count(data[:offset], []byte("\n")), err: err}
		}
		stop := int(dec.InputOffset())
		start := stop - len(raw)
		p := &jsonParser{dec: json.NewDecoder(bytes.NewReader(raw)), data: raw}
		p.dec.UseNumber()
		p.line = 1 + bytes.Count(data[:start], []byte("\n"))
		doc := document{raw: raw, line: p.line}
		doc.root, err = p.value(nil)
		if err != nil {
			return docs, &jsonError{line: p.line, err: err}
		}
		doc.faults = p.faults.all(doc.line)
		docs = append(docs, doc)
	}
}

// +kubebuilder:object:generate=false
type jsonError struct {
	line int
	err  error
}

func (e *jsonError) Error() string { return "is not valid JSON: " + e.err.Error() }

// +kubebuilder:object:generate=false
type jsonParser struct {
	dec    *json.Decoder
	data   []byte
	at     int // how far lines have been counted
	line   int
	faults faults
}

func (p *jsonParser) token() (json.Token, int, error) {
	t, err := p.dec.Token()
	if err != nil {
		return nil, p.line, err
	}
	end := int(p.dec.InputOffset())
	start := p.at
	for start < end && strings.IndexByte(" \t\r\n,:", p.data[start]) >= 0 {
		start++
	}
	p.line += bytes.Count(p.data[p.at:start], []byte("\n"))
	p.at = end // tokens have no line breaks in them
	return t, p.line, nil
}

func (p *jsonParser) value(at *place) (*node, error) {
	t, line, err := p.token()
	if err != nil {
		return nil, err
	}
	return p.from(t, line, at)
}

func (p *jsonParser) from(t json.Token, line int, at *place) (*node, error) {
	n := &node{line: line}
	switch v := t.(type) {
	case nil:
		n.kind, n.text = nullNode, "null"
	case bool:
		n.kind, n.text = boolNode, fmt.Sprint(v)
	case json.Number:
		n.kind, n.text = numberNode, v.String()
	case string:
		n.kind, n.text = stringNode, v
	case json.Delim:
		if v == '{' {
			return n, p.object(n, at)
		}
		return n, p.array(n, at)
	}
	n.source = n.text
	return n, nil
}

func (p *jsonParser) object(n *node, at *place) error {
	n.kind = mapNode
	index := map[string]int{}
	for {
		t, line, err := p.token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return nil // the closing brace
		}
		value, err := p.value(at.under(key))
		if err != nil {
			return err
		}
		if first, ok := index[key]; ok {
			p.faults.add(fault{line: line, path: at.under(key).path(), message: fmt.Sprintf("is there twice, first in line %d; remove one", first)})
			continue
		}
		index[key] = line
		n.entries = append(n.entries, entry{key: key, line: line, value: value})
	}
}

func (p *jsonParser) array(n *node, at *place) error {
	n.kind = listNode
	for i := 0; ; i++ {
		t, line, err := p.token()
		if err != nil {
			return err
		}
		if t == json.Delim(']') {
			return nil
		}
		item, err := p.from(t, line, at.item(i))
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
}
