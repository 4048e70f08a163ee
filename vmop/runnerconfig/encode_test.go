package runnerconfig_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/yamltest"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// configuration draws any configuration, with all that its types have, whether a runner would take
// it or not.
func configuration(t *rapid.T) runnerconfig.Config {
	var c runnerconfig.Config
	fill(t, reflect.ValueOf(&c).Elem(), "config")
	return c
}

var (
	anyText = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "yes", "a<b>&c", "/srv/vm's \"disk\"", "two\nlines\n", "\u2028", "x: y", "0123", "\xff"}))
	anyJSON = rapid.SampledFrom([]string{"", "{}", `{"a": [1, 2.50, "x<y"], "b": null}`, ` {"users":[{"name":"alice"}]} `, `"text"`})
)

// fill draws a value for all that a value has.
func fill(t *rapid.T, v reflect.Value, name string) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		if text := anyJSON.Draw(t, name); text != "" {
			v.Set(reflect.ValueOf(json.RawMessage(text)))
		}
		return
	case v.Kind() == reflect.Pointer:
		if rapid.Bool().Draw(t, name) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), name)
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(anyText.Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.OneOf(rapid.Just(int64(0)), rapid.Just(int64(1<<30)), rapid.Int64()).Draw(t, name))
	case reflect.Slice:
		if n := rapid.IntRange(-1, 2).Draw(t, name); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i), fmt.Sprintf("%s[%d]", name, i))
			}
		}
	case reflect.Map:
		for range rapid.IntRange(0, 3).Draw(t, name) {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			value := reflect.New(v.Type().Elem()).Elem()
			fill(t, value, name+" value")
			if value.Kind() == reflect.Slice && value.Len() == 0 {
				continue // no JSON: a value is there or not
			}
			v.SetMapIndex(reflect.ValueOf(anyText.Draw(t, name+" key")), value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	default:
		t.Fatalf("%s: nobody has said what a %s may be", name, v.Type())
	}
}

// A configuration is written as encoding/json and the YAML library write it. Its digest tells
// whether the runner must be told of a change, and VM-Operator's runner reads the file.
func TestAConfigurationIsWrittenAsByTheLibraries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := configuration(t)
		want, wantErr := json.Marshal(c)
		got, err := c.JSON()
		if err != nil || wantErr != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s (%v), want %s (%v)", got, err, want, wantErr)
		}
		text, err := runnerconfig.Marshal(c)
		wantText, wantErr := yamltest.FromJSON(want)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(text, wantText) {
			t.Fatalf("%s (%v), want %s (%v)", text, err, wantText, wantErr)
		}
	})
}

// JSON that is none is an error, wherever it is.
func TestAConfigurationWithWhatIsNoJSON(t *testing.T) {
	for name, c := range map[string]runnerconfig.CloudInit{
		"user data": {UserData: json.RawMessage("{")},
		"network":   {NetworkConfig: json.RawMessage("x")},
		"meta-data": {MetaDataValues: map[string]json.RawMessage{"a": json.RawMessage("[")}},
	} {
		if _, err := runnerconfig.Marshal(runnerconfig.Config{Runner: runnerconfig.Runner{CloudInit: &c}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
