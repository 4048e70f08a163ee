package runnerconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/vmop/sdk/internal/yamljson"
)

// ErrNoRunner says that a file has no "/Runner" key.
var ErrNoRunner = errors.New(`the key "/Runner" is missing`)

const (
	maxFile     = 2 << 20
	maxWarnings = 50
)

// Parse reads config.yaml as it is written: nothing is defaulted but what a
// missing key means in VM-Operator's format (no "network" at all is one tap
// interface, while null is none). Keys that it does not know are returned as
// warnings, because a newer operator may write them; everything else that is
// wrong is an error.
func Parse(data []byte) (Config, []string, error) {
	var c Config
	if len(data) > maxFile {
		return c, nil, fmt.Errorf("runner configuration: has %d bytes: want at most %d MiB, twice what a ConfigMap holds", len(data), maxFile>>20)
	}
	doc, err := yamljson.ToJSON(data)
	if err != nil {
		return c, nil, fmt.Errorf("runner configuration: %w", err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(doc, &top); err != nil {
		return c, nil, fmt.Errorf("runner configuration: want a mapping with the key %q", "/Runner")
	}
	if _, ok := top["/Runner"]; !ok {
		return c, nil, fmt.Errorf("runner configuration: %w", ErrNoRunner)
	}
	if err := json.Unmarshal(doc, &c); err != nil {
		if te := (*json.UnmarshalTypeError)(nil); errors.As(err, &te) {
			return c, nil, fmt.Errorf("runner configuration: %s: found %s, want %s", te.Field, te.Value, kindName(te.Type))
		}
		return c, nil, fmt.Errorf("runner configuration: %w", located(doc, err))
	}
	if !hasPath(doc, "/Runner", "vm", "network") {
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

// located adds to an error about a size which sizes are wrong: encoding/json does
// not say it of types that decode themselves.
func located(doc json.RawMessage, err error) error {
	var sizes struct {
		Runner struct {
			VM map[string]json.RawMessage `json:"vm"`
		} `json:"/Runner"`
	}
	if json.Unmarshal(doc, &sizes) != nil {
		return err
	}
	var found []error
	for _, key := range []string{"maximumRam", "currentRam"} {
		raw, ok := sizes.Runner.VM[key]
		if !ok {
			continue
		}
		if err := new(Bytes).UnmarshalJSON(raw); err != nil {
			found = append(found, fmt.Errorf("/Runner.vm.%s: %w", key, err))
		}
	}
	if len(found) == 0 {
		return err
	}
	return errors.Join(found...)
}

// Marshal writes config.yaml so that VM-Operator's runner reads it too.
func Marshal(c Config) ([]byte, error) {
	doc, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("runner configuration: %w", err)
	}
	return yamljson.FromJSON(doc)
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice:
		return "a list"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	}
	return "a " + t.Kind().String()
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

// unknownKeys collects the keys of doc for which t has no field.
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
		fields := map[string]reflect.Type{}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			fields[name] = t.Field(i).Type
		}
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
