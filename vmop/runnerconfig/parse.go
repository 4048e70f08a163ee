package runnerconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vmop/sdk/internal/yamljson"
)

// ErrNoRunner is the error when a file has no "/Runner" key.
var ErrNoRunner = errors.New(`the key "/Runner" is missing`)

const (
	runnerName = "/Runner"

	maxFile     = 2 << 20
	maxWarnings = 50
)

// Parse reads config.yaml. It applies no defaults but the meaning of a missing key in VM-Operator's
// format (no "network" at all is one tap interface, while null is none). A scalar of another type
// than the key's is converted as VM-Operator's runner does ("60" and 60.0 are 60, yes is true, and
// 5 is "5" for a string), unless that would be a guess, and YAML's merge keys (<<) are resolved.
// Unknown keys are returned as warnings, because a newer operator may write them; everything else
// that is wrong is an error.
func Parse(data []byte) (Config, []string, error) {
	var c Config
	if len(data) > maxFile {
		return c, nil, fmt.Errorf("runner configuration: has %d bytes: want at most %d MiB, twice what a ConfigMap holds", len(data), maxFile>>20)
	}
	node, err := yamljson.Decode(data)
	if err != nil {
		return c, nil, fmt.Errorf("runner configuration: %w", err)
	}
	if err := yamljson.Merge(node); err != nil {
		return c, nil, fmt.Errorf("runner configuration: %w", err)
	}
	if err := runnerKey(node); err != nil {
		return c, nil, fmt.Errorf("runner configuration: %w", err)
	}
	if err := coerce(node, reflect.TypeFor[Config]()); err != nil {
		return c, nil, fmt.Errorf("runner configuration: %w", err)
	}
	doc, err := yamljson.NodeToJSON(node)
	if err != nil {
		return c, nil, fmt.Errorf("runner configuration: %w", err)
	}
	if err := json.Unmarshal(doc, &c); err != nil {
		return c, nil, fmt.Errorf("runner configuration: %w", err)
	}
	if !hasPath(doc, runnerName, "vm", "network") {
		c.Runner.VM.Network = []Network{{Type: NetworkTap}}
	}
	if d := c.Runner.VM.Display; d != nil && d.SPICE != nil {
		if d.SPICE.StreamingVideo == "" {
			d.SPICE.StreamingVideo = d.SPICE.StreamingVideoLegacy
		}
		d.SPICE.StreamingVideoLegacy = ""
	}
	var warnings []string
	unknownKeys(doc, reflect.TypeFor[Config](), "", &warnings)
	if n := len(warnings) - maxWarnings; n > 0 {
		warnings = append(warnings[:maxWarnings], fmt.Sprintf("%d more unknown keys, ignored", n))
	}
	return c, warnings, nil
}

// runnerKey renames the runner's key, which may begin with the underscore that VM-Operator accepts
// for a slash.
func runnerKey(doc *yaml.Node) error {
	top := doc
	if doc.Kind == yaml.DocumentNode {
		top = doc.Content[0]
	}
	if top.Kind == yaml.ScalarNode && top.ShortTag() == "!!null" {
		return ErrNoRunner
	}
	if top.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: found %s, want a mapping with the key %q", top.Line, found(top), runnerName)
	}
	var key *yaml.Node
	at := 0
	for i := 0; i < len(top.Content); i += 2 {
		k := yamljson.Target(top.Content[i])
		if k.Kind != yaml.ScalarNode || k.Value != runnerName && k.Value != "_Runner" {
			continue
		}
		if key != nil {
			return fmt.Errorf("line %d: key %q is the same as that of line %d", k.Line, k.Value, key.Line)
		}
		key, at = k, i
	}
	if key == nil {
		return ErrNoRunner
	}
	named := *key // other aliases may refer to it
	named.Value = runnerName
	top.Content[at] = &named
	return nil
}

// Marshal writes config.yaml so that VM-Operator's runner can read it too.
func Marshal(c Config) ([]byte, error) {
	doc, err := c.JSON()
	if err != nil {
		return nil, fmt.Errorf("runner configuration: %w", err)
	}
	return yamljson.FromJSON(doc)
}

func hasPath(doc json.RawMessage, keys ...string) bool {
	for _, k := range keys {
		var m map[string]json.RawMessage
		if json.Unmarshal(doc, &m) != nil {
			return false
		}
		var ok bool
		if doc, ok = m[k]; !ok {
			return false
		}
	}
	return true
}

func unknownKeys(doc json.RawMessage, t reflect.Type, path string, out *[]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && t != reflect.TypeFor[json.RawMessage]():
		var items []json.RawMessage
		_ = json.Unmarshal(doc, &items)
		for i, item := range items {
			unknownKeys(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i), out)
		}
	case t.Kind() == reflect.Struct:
		members, err := yamljson.Keys(doc)
		if err != nil {
			return
		}
		fields := fieldTypes(t)
		for _, m := range members {
			sub := strings.TrimPrefix(path+"."+m.Name, ".")
			if ft, ok := fields[m.Name]; ok {
				unknownKeys(m.Value, ft, sub, out)
			} else {
				*out = append(*out, fmt.Sprintf("%.200s: unknown key, ignored", sub))
			}
		}
	}
}
