package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/output"
)

// schemaFile is for users, and made by make generate.
const schemaFile = "../../docs/vmop-cli.schema.json"

func TestSchemaIsUpToDate(t *testing.T) {
	var want bytes.Buffer
	if err := textout.WriteJSON(&want, schemaOf(outputs())); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, want.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is another one, %v: run make generate", schemaFile, err)
	}
}

// Each command with -o json has a schema, and a script that prints with it: what
// vmop-cli prints in scripts is checked, see checked.
func TestSchemaHasAllCommands(t *testing.T) {
	scripts := ""
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts += string(data)
	}
	described := []string{"render"} // what it prints is defined elsewhere
	for _, o := range outputs() {
		described = append(described, o.command())
		if !regexp.MustCompile(`vmop-cli ` + o.command() + ` [^\n]*-o json`).MatchString(scripts) {
			t.Errorf("no script has vmop-cli %s -o json", o.command())
		}
	}
	p := &program{}
	for _, c := range p.app().Commands {
		for _, f := range c.Flags {
			if slices.Contains(f.Names(), "output") && strings.Contains(fmt.Sprint(f), "json") && !slices.Contains(described, c.Name) {
				t.Errorf("the output of vmop-cli %s has no schema", c.Name)
			}
		}
	}
}

// checked is what is wrong with the JSON or YAML that a command has printed; "" if nothing
// is, or if it was none.
func checked(args []string, printed []byte) string {
	all := outputs()
	if !forProgramsAsked(args) || len(bytes.TrimSpace(printed)) == 0 || !slices.ContainsFunc(all, func(o described) bool { return slices.Contains(args, o.command()) }) {
		return ""
	}
	printed, err := yaml.YAMLToJSON(printed) // which JSON is, too
	if err != nil {
		return err.Error()
	}
	var value any
	if err := json.Unmarshal(printed, &value); err != nil {
		return err.Error()
	}
	// One type reads all of it, and knows every field.
	if err := json.Unmarshal(printed, new(output.Output)); err != nil {
		return err.Error()
	}
	s := schemaOf(all)
	problems := ""
	for _, o := range all {
		if !slices.Contains(args, o.command()) {
			continue
		}
		err := s.check(o.name, s.Defs[o.name], value)
		if err == nil {
			return ""
		}
		problems += err.Error() + "\n"
	}
	return problems
}

// forProgramsAsked reports whether a command line asks for what programs read.
func forProgramsAsked(args []string) bool {
	for i, a := range args {
		value, given := strings.CutPrefix(a, "-o=")
		if !given {
			value, given = strings.CutPrefix(a, "--output=")
		}
		if !given && (a == "-o" || a == "--output") && i+1 < len(args) {
			value = args[i+1]
		}
		if forPrograms(value) {
			return true
		}
	}
	return false
}

// The schema fits what Go's JSON has of its types, whatever is in them.
func TestSchemaFitsItsTypes(t *testing.T) {
	all := outputs()
	s := schemaOf(all)
	for _, o := range all {
		for _, full := range []bool{false, true} {
			v := reflect.New(reflect.TypeOf(o.of)).Elem()
			if full {
				fill(v, 0)
			}
			object, is := v.Addr().Interface().(output.Object)
			if !is {
				t.Fatalf("%s: %T is no object", o.name, o.of)
			}
			data, err := json.Marshal(output.Output{List: o.list, Items: []output.Object{object}})
			if err != nil {
				t.Fatalf("%s: %v", o.name, err)
			}
			var value any
			if err := json.Unmarshal(data, &value); err != nil {
				t.Fatal(err)
			}
			if err := s.check(o.name, s.Defs[o.name], value); err != nil {
				t.Errorf("%v\n%s", err, data)
			}
		}
	}
	type part struct {
		Name  string    `json:"name"`
		Since time.Time `json:"since"`
		CPUs  int       `json:"cpus,omitempty"`
	}
	s = schemaOf([]described{{name: "parts", of: []part{}}})
	for text, want := range map[string]string{
		`{}`: "parts is object, want array or null", `[{"name":"a"}]`: "parts[0].since is missing",
		`[{"name":"b","since":"now"}]`:                             "cannot parse",
		`[{"name":"b","since":"2026-01-01T00:00:00Z","cpus":1.5}]`: "cpus is number, want integer",
		`[{"name":"b","since":"2026-01-01T00:00:00Z","cpu":1}]`:    "cpu is not described",
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if err := s.check("parts", s.Defs["parts"], value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// fill puts something into all of a value.
func fill(v reflect.Value, depth int) {
	if depth > 12 || !v.CanSet() {
		return
	}
	if _, raw := v.Interface().(json.RawMessage); !raw && v.Addr().Type().Implements(jsonMarshaler) && v.Type() != reflect.TypeFor[time.Time]() {
		return // it knows itself what it may hold
	}
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1_800_000_000, 0).UTC()))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"a":[1]}`))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("text")
	case reflect.Float64:
		v.SetFloat(math.Pi)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e, depth+1)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), e)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	}
}

// check says what of a value does not fit a schema, or is not described by it.
func (s *schema) check(at string, d *schema, value any) error {
	if d.Ref != "" {
		return s.check(at, s.Defs[strings.TrimPrefix(d.Ref, defs)], value)
	}
	if len(d.Type) == 0 {
		return nil
	}
	kind := kindOf(value)
	if !slices.Contains(d.Type, kind) && (kind != "integer" || !slices.Contains(d.Type, "number")) {
		return fmt.Errorf("%s is %s, want %s", at, kind, strings.Join(d.Type, " or "))
	}
	switch v := value.(type) {
	case []any:
		for i, e := range v {
			if err := s.check(fmt.Sprintf("%s[%d]", at, i), d.Items, e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range d.Required {
			if _, there := v[name]; !there {
				return fmt.Errorf("%s.%s is missing", at, name)
			}
		}
		for name, e := range v {
			of := d.Properties[name]
			if of == nil {
				of = d.More
			}
			if of == nil {
				return fmt.Errorf("%s.%s is not described", at, name)
			}
			if err := s.check(at+"."+name, of, e); err != nil {
				return err
			}
		}
	case string:
		if d.Format == "date-time" {
			if _, err := time.Parse(time.RFC3339, v); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		}
	}
	return nil
}

func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
