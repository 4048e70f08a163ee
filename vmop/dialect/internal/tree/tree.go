// Package tree reads the manifest of another system and remembers what of it was
// read, so that whatever a translation passed over can be named.
package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop/spec"
)

// Node is a value of a manifest. A nil Node is a missing value; every method accepts it.
type Node struct {
	path  string
	value any
	m     *manifest
}

type manifest struct {
	object *spec.Object
	read   map[string]extent // by path
	notes  []spec.Problem
}

type extent int

const (
	itself extent = iota + 1 // its presence
	all                      // and everything in it
)

// New returns the root of an object that [spec.Load] returned, which has limited the expansion of
// its aliases.
func New(o *spec.Object) (*Node, error) {
	if o == nil {
		return nil, errors.New("there is no object: the pointer is nil")
	}
	var value map[string]any
	if err := yaml.Unmarshal(o.Raw, &value); err != nil {
		return nil, fmt.Errorf("%s:%d: %s %s: %w", o.File, o.Line, o.Kind, o.Name, err)
	}
	return &Node{value: value, m: &manifest{object: o, read: map[string]extent{}}}, nil
}

// Companion returns the root of an object that a machine refers to; its metadata and status count
// as read.
func Companion(o *spec.Object) (*Node, error) {
	n, err := New(o)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		n.Get(key).ReadAll()
	}
	return n, nil
}

// ServerMade are the metadata fields that an API server writes.
var ServerMade = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// Label converts a name to a part of object names: lower case, with dashes for other characters.
func Label(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	return strings.Trim(clean, "-")
}

// FieldError is a problem that prevents a translation.
type FieldError struct {
	// Path is the path of the field, such as spec.cpu.cores.
	Path string
	// Message describes what is wrong and what would be right.
	Message string
}

func (e *FieldError) Error() string { return e.Path + ": " + e.Message }

// Object returns the object that the node belongs to.
func (n *Node) Object() *spec.Object { return n.m.object }

// Path returns the node's path, such as spec.volumes[2].name.
func (n *Node) Path() string { return n.path }

// Is reports whether the value exists and is not null.
func (n *Node) Is() bool { return n != nil && n.value != nil }

// Get returns the value below a path of keys, or nil.
func (n *Node) Get(keys ...string) *Node {
	for _, key := range keys {
		if n == nil {
			return nil
		}
		fields, ok := n.value.(map[string]any)
		if !ok {
			return nil
		}
		value, ok := fields[key]
		if !ok {
			return nil
		}
		n = &Node{path: join(n.path, key), value: value, m: n.m}
	}
	return n
}

// Keys returns the keys of a mapping, sorted.
func (n *Node) Keys() []string {
	if n == nil {
		return nil
	}
	fields, _ := n.value.(map[string]any)
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// List returns the items of a list.
func (n *Node) List() []*Node {
	if !n.Is() {
		return nil
	}
	items, ok := n.value.([]any)
	if !ok {
		n.wrong("a list")
		return nil
	}
	out := make([]*Node, len(items))
	for i, item := range items {
		out[i] = &Node{path: fmt.Sprintf("%s[%d]", n.path, i), value: item, m: n.m}
	}
	return out
}

// String returns a string. A number or a boolean is converted to its text.
func (n *Node) String() string {
	if !n.Is() {
		return ""
	}
	switch v := n.value.(type) {
	case string:
		n.Read()
		return v
	case int, int64, uint64, float64, bool:
		n.Read()
		return fmt.Sprint(v)
	}
	n.wrong("a string")
	return ""
}

// Int returns a whole number that fits an int32.
func (n *Node) Int() (int32, bool) {
	if !n.Is() {
		return 0, false
	}
	i, err := strconv.ParseInt(fmt.Sprint(n.value), 10, 32)
	if err != nil {
		n.wrong("a whole number")
		return 0, false
	}
	n.Read()
	return int32(i), true
}

// Bool returns a boolean; ok is false if there is none.
func (n *Node) Bool() (value, ok bool) {
	if !n.Is() {
		return false, false
	}
	value, ok = n.value.(bool)
	if !ok {
		n.wrong("true or false")
		return false, false
	}
	n.Read()
	return value, true
}

// Strings returns a mapping of strings.
func (n *Node) Strings() map[string]string {
	var out map[string]string
	for _, key := range n.Keys() {
		if out == nil {
			out = map[string]string{}
		}
		out[key] = n.Get(key).String()
	}
	n.Read()
	return out
}

// amount is the form of quantities that is accepted. Kubernetes' parser accepts any exponent, and
// computes with as many digits.
var amount = regexp.MustCompile(`^[0-9]{1,19}(\.[0-9]{1,9})?([eE]\+?[0-9]{1,2}|[numkMGTPE]|[KMGTPE]i)?$`)

// Quantity returns an amount, such as 512Mi. ok is false without a valid one; an invalid one is
// noted.
func (n *Node) Quantity() (q resource.Quantity, ok bool) {
	text := n.String()
	if text == "" {
		return q, false
	}
	if amount.MatchString(text) {
		if q, err := resource.ParseQuantity(text); err == nil {
			return q, true
		}
	}
	n.Note("is %q, expected an amount such as 512Mi", clip(text))
	return q, false
}

// Decode decodes the value into a Kubernetes type, and reports whether it could. A value with
// unknown fields is noted and left out.
func (n *Node) Decode(into any) bool {
	if !n.Is() {
		return false
	}
	data, err := json.Marshal(n.value)
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		err = dec.Decode(into)
	}
	if err != nil {
		n.Note("is left out: %s", strings.TrimPrefix(err.Error(), "json: "))
		return false
	}
	n.ReadAll()
	return true
}

// Read marks a scalar, or the presence of a mapping, as read; the content of the mapping must still
// be read.
func (n *Node) Read() {
	if n != nil {
		n.m.read[n.path] = max(n.m.read[n.path], itself)
	}
}

// ReadAll marks the node and everything in it as read.
func (n *Node) ReadAll() {
	if n != nil {
		n.m.read[n.path] = all
	}
}

// Note records a note for the user. The node counts as read.
func (n *Node) Note(format string, args ...any) {
	if n == nil {
		return
	}
	n.ReadAll()
	n.m.notes = append(n.m.notes, n.m.object.Problem(n.path, fmt.Sprintf(format, args...)))
}

// Remark records a note for the user. The content of the node must still be read.
func (n *Node) Remark(format string, args ...any) {
	if n == nil {
		return
	}
	n.Read()
	n.m.notes = append(n.m.notes, n.m.object.Problem(n.path, fmt.Sprintf(format, args...)))
}

func (n *Node) wrong(want string) { n.Note("is %s, expected %s; it is left out", kind(n.value), want) }

// Notes returns the notes, and one for each value that was not read, in the order of the file.
func (n *Node) Notes(unread func(path string) string) []spec.Problem {
	var out []spec.Problem
	out = append(out, n.m.notes...)
	for _, left := range n.left() {
		out = append(out, n.m.object.Problem(left.path, unread(left.path)))
	}
	slices.SortStableFunc(out, func(a, b spec.Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Path, b.Path)
	})
	return out
}

func (n *Node) left() []*Node {
	var out []*Node
	if n.m.read[n.path] == all || empty(n.value) {
		return nil
	}
	if n.path != "" && !n.anyRead() {
		return []*Node{n}
	}
	switch v := n.value.(type) { // scalars that were read have nothing below them
	case map[string]any:
		for _, key := range n.Keys() {
			out = append(out, n.Get(key).left()...)
		}
	case []any:
		for i, item := range v {
			item := &Node{path: fmt.Sprintf("%s[%d]", n.path, i), value: item, m: n.m}
			out = append(out, item.left()...)
		}
	}
	return out
}

func (n *Node) anyRead() bool {
	for path := range n.m.read {
		if rest, ok := strings.CutPrefix(path, n.path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// empty reports whether a value has no meaning. An empty mapping may have one, as in tpm: {}.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, of := range v {
			if !empty(of) {
				return false
			}
		}
		return len(v) > 0
	}
	return false
}

func kind(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return strconv.Quote(clip(v))
	}
	return fmt.Sprint(value)
}

func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, ".[]/"):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}
