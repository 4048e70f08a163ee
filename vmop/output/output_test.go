package output_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

// Each kind is read again as what it was, by the one type that reads all.
func TestEveryKindIsReadAgain(t *testing.T) {
	var all output.Output
	for _, k := range output.Kinds() {
		object, is := reflect.New(k.Type).Interface().(output.Object)
		if !is {
			t.Fatalf("%s: %v is no object", k.Kind, k.Type)
		}
		for _, out := range []output.Output{output.One(object), {List: true, Items: []output.Object{object, object}}} {
			data, err := json.Marshal(out)
			if err != nil {
				t.Fatalf("%s: %v", k.Kind, err)
			}
			var back output.Output
			if err := json.Unmarshal(data, &back); err != nil {
				t.Fatalf("%s: %v\n%s", k.Kind, err, data)
			}
			if back.List != out.List || len(back.Items) != len(out.Items) || reflect.TypeOf(back.Items[0]).Elem() != k.Type {
				t.Errorf("%s is read as %+v", k.Kind, back)
			}
			again, err := json.Marshal(back)
			if err != nil || !bytes.Equal(data, again) {
				t.Errorf("%s: %v\n%s\n%s", k.Kind, err, data, again)
			}
			// A field that nobody knows is an error.
			strange := strings.Replace(string(data), `"apiVersion":"`+k.APIVersion+`"`, `"strange":1,"apiVersion":"`+k.APIVersion+`"`, 1)
			if err := json.Unmarshal([]byte(strange), &back); err == nil || !strings.Contains(err.Error(), "strange") {
				t.Errorf("%s with a strange field: %v", k.Kind, err)
			}
		}
		all.Items = append(all.Items, object)
	}
	if !slices.IsSortedFunc(output.Kinds(), func(a, b output.Kind) int { return strings.Compare(a.Kind, b.Kind) }) {
		t.Error("the kinds are not sorted")
	}
}

func TestNothingElseIsRead(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "cannot unmarshal", `{}`: `kind ""`, `{"apiVersion":"v1","kind":"List"}`: "no items", `{"apiVersion":"v2","kind":"List","items":[]}`: `apiVersion "v2"`,
		`{"apiVersion":"v1","kind":"List","items":[{}]}`:                  "items[0]",
		`{"apiVersion":"v1","kind":"List","items":[],"metadata":{"x":1}}`: `"x"`,
		`{"apiVersion":"v1","kind":"VirtualMachine"}`:                     `kind "VirtualMachine"`,
	} {
		if err := json.Unmarshal([]byte(text), new(output.Output)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, o := range []output.Output{{}, {Items: []output.Object{nil}}, {Items: []output.Object{(*output.Disk)(nil)}}, {Items: []output.Object{&spec.VmPool{}}}} {
		if data, err := json.Marshal(o); err == nil {
			t.Errorf("%+v is written as %s", o, data)
		}
	}
	if data, err := json.Marshal(output.ListOf([]output.Disk{})); err != nil || string(data) != `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}` {
		t.Errorf("%s, %v", data, err)
	}
}

// The rules of the package's documentation hold for every field of the kinds that no
// API has.
func TestFieldsFollowTheRules(t *testing.T) {
	seen := map[reflect.Type]bool{}
	camel := regexp.MustCompile(`^[a-z][A-Za-z0-9-]*$`)
	// The same fact under another name, as commands had it.
	old := map[string]string{
		"status.since": "status.stats.phasesTransitions", "started": "status.stats.lastStartTime", "created": "metadata.creationTimestamp", "virtualSize": "size", "actualSize": "allocated",
		"allocatedSize": "allocated", "machine": "virtualMachineName", "namespace": "metadata.namespace", "oldValue": "currentValue", "newValue": "desiredValue",
		"needRestart": "status.restartAwaitingChanges", "socket": "path", "dir": "path", "fetched": "metadata.creationTimestamp", "found": "message", "what": "message",
		"memoryBytes": "memory", "addresses": "ipAddresses",
	}
	var check func(at string, t reflect.Type)
	check = func(at string, typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] || !strings.HasSuffix(typ.PkgPath(), "vmop/output") {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				if !f.Anonymous || !strings.Contains(options, "inline") {
					t.Errorf("%s.%s has no name in JSON", at, f.Name)
				}
				check(at, f.Type)
				continue
			}
			// OSInfo has the names of the guest agent's protocol, as the status has.
			if typ != reflect.TypeFor[output.OSInfo]() {
				if better := old[name]; better != "" {
					t.Errorf("%s.%s: the name of that is %s", at, name, better)
				}
				if strings.Contains(name, "-") {
					t.Errorf("%s.%s: want camel case", at, name)
				}
			}
			if !camel.MatchString(name) {
				t.Errorf("%s.%s is no name of a field", at, name)
			}
			switch f.Type.Kind() {
			case reflect.Int64, reflect.Uint64, reflect.Float64:
				if !strings.HasSuffix(name, "Seconds") {
					t.Errorf("%s.%s: a size is a quantity, and a span has the unit in its name", at, name)
				}
			case reflect.Struct:
				if f.Type.String() == "time.Time" {
					t.Errorf("%s.%s: want metav1.Time", at, name)
				}
			}
			check(at+"."+name, f.Type)
		}
	}
	for _, k := range output.Kinds() {
		check(k.Kind, k.Type)
	}
	if len(seen) < 20 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
