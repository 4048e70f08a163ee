package runnerconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vmop/sdk/internal/yamljson"
)

// coercion converts the scalars of a document to the types of the configuration as VM-Operator's
// runner does: it reads YAML 1.1 (SnakeYAML), and Jackson converts numbers and booleans from
// strings and back. It is an error where the two accept a value that was hardly intended (2 for
// true, 10.5 for 10), or change a string (010 becomes "8").
type coercion struct {
	errs []error
	// seen prevents walking through aliased nodes more than once.
	seen map[visit]bool
}

type visit struct {
	node *yaml.Node
	as   reflect.Type
}

func coerce(doc *yaml.Node, t reflect.Type) error {
	c := coercion{seen: map[visit]bool{}}
	c.node(doc, t, "")
	return errors.Join(c.errs...)
}

const maxCoercionErrors = 20

func (c *coercion) wrong(n *yaml.Node, path string, want string) {
	c.tell(n, path, fmt.Sprintf("found %s, want %s", found(n), want))
}

func (c *coercion) tell(n *yaml.Node, path, what string) {
	if len(c.errs) < maxCoercionErrors {
		c.errs = append(c.errs, fmt.Errorf("line %d: %.200s: %s", n.Line, strings.TrimPrefix(path, "."), what))
	}
}

func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if isText(n) {
		return fmt.Sprintf("the text %.100q", n.Value)
	}
	return fmt.Sprintf("%.100s", n.Value)
}

func isText(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" }

var (
	rawType      = reflect.TypeFor[json.RawMessage]()
	bytesType    = reflect.TypeFor[Bytes]()
	metaDataType = reflect.TypeFor[map[string]string]()
)

func isDocument(n *yaml.Node) bool {
	n = yamljson.Target(n)
	return n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode
}

func (c *coercion) node(n *yaml.Node, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == rawType:
		return // passed on as it is
	case n.Kind == yaml.DocumentNode:
		c.node(n.Content[0], t, path)
		return
	case n.Kind == yaml.AliasNode && n.Alias.Kind == yaml.ScalarNode:
		// Elsewhere, the aliased node may have another type.
		other := *n.Alias
		n.Alias = &other
		c.node(&other, t, path)
		return
	case n.Kind == yaml.AliasNode:
		if v := (visit{n.Alias, t}); !c.seen[v] {
			c.seen[v] = true
			c.node(n.Alias, t, path)
		}
		return
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			c.wrong(n, path, "a mapping")
			return
		}
		fields := fieldTypes(t)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := yamljson.Target(n.Content[i])
			if ft, ok := fields[key.Value]; ok && key.Kind == yaml.ScalarNode {
				c.node(n.Content[i+1], ft, path+"."+key.Value)
			}
		}
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			c.wrong(n, path, "a mapping")
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if t == metaDataType && isDocument(n.Content[i+1]) {
				continue // passed on as it is
			}
			c.node(n.Content[i+1], t.Elem(), fmt.Sprintf("%s.%.100s", path, yamljson.Target(n.Content[i]).Value))
		}
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			c.wrong(n, path, "a list")
			return
		}
		for i, item := range n.Content {
			c.node(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		c.scalar(n, t, path)
	}
}

func fieldTypes(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			out[name] = t.Field(i).Type
		}
	}
	return out
}

func (c *coercion) scalar(n *yaml.Node, t reflect.Type, path string) {
	want, set := "", false
	switch {
	case t == bytesType:
		want = "a size: a number and a unit, such as \"4 GiB\""
		if set = emptied(n); !set && n.Kind == yaml.ScalarNode && (isText(n) || plain.MatchString(n.Value)) {
			_, err := ParseBytes(n.Value)
			if set = err == nil; !set {
				c.tell(n, path, err.Error())
				return
			}
			text(n, n.Value)
		}
	case t.Kind() == reflect.String:
		want, set = "a text", isText(n) || plainText(n)
	case t.Kind() == reflect.Bool:
		want, set = "true or false", emptied(n) || truth(n)
	default:
		want, set = "a whole number", emptied(n) || whole(n, t.Bits())
	}
	if !set {
		c.wrong(n, path, want)
	}
}

func text(n *yaml.Node, s string) bool {
	n.Tag, n.Value, n.Style = "!!str", s, yaml.DoubleQuotedStyle
	return true
}

// emptied replaces an empty string by null, as Jackson does for types other than strings.
func emptied(n *yaml.Node) bool {
	if !isText(n) || strings.TrimSpace(n.Value) != "" {
		return false
	}
	n.Tag, n.Value, n.Style = "!!null", "null", 0
	return true
}

// plain is the only spelling of a number that all YAML readers agree on.
var plain = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

func plainText(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return plain.MatchString(n.Value) && text(n, n.Value)
	case "!!bool":
		return (n.Value == "true" || n.Value == "false") && text(n, n.Value)
	case "!!timestamp": // only YAML 1.1 has dates
		return text(n, n.Value)
	}
	return false
}

// truth reads YAML's booleans, unquoted ones of YAML 1.1, 0 and 1, and a quoted true and false.
func truth(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	b := false
	switch word := strings.TrimSpace(n.Value); n.ShortTag() {
	case "!!bool":
		return true
	case "!!int":
		if word != "0" && word != "1" {
			return false
		}
		b = word == "1"
	case "!!str":
		var is bool
		if b, is = yamljson.TruthOfSnakeYAML(word); !is || yamljson.Quoted(n) && !strings.EqualFold(word, strconv.FormatBool(b)) {
			return false
		}
	default:
		return false
	}
	n.Tag, n.Value, n.Style = "!!bool", strconv.FormatBool(b), 0
	return true
}

var decimal = regexp.MustCompile(`^[+-]?[0-9]+$`)

func whole(n *yaml.Node, bits int) bool {
	if n.Kind != yaml.ScalarNode || len(n.Value) > 64 {
		return false
	}
	var value *big.Rat
	switch word := strings.TrimSpace(n.Value); n.ShortTag() {
	case "!!int":
		var i int64
		if n.Decode(&i) != nil {
			return false
		}
		value = new(big.Rat).SetInt64(i)
	case "!!float":
		var f float64
		if n.Decode(&f) != nil {
			return false
		}
		if value = new(big.Rat).SetFloat64(f); value == nil {
			return false
		}
	case "!!str":
		if !decimal.MatchString(word) {
			return false
		}
		value, _ = new(big.Rat).SetString(word)
	}
	if value == nil || !value.IsInt() || !value.Num().IsInt64() {
		return false
	}
	i := value.Num().Int64()
	if i>>(bits-1) != 0 && i>>(bits-1) != -1 {
		return false
	}
	n.Tag, n.Value, n.Style = "!!int", strconv.FormatInt(i, 10), 0
	return true
}
