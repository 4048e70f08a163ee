package plainjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/plainjson"
	"pgregory.net/rapid"
)

// What is written is the value, on one line, with what HTML would escape as it is.
func TestMarshalIsTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "value")
		text, err := plainjson.Marshal(in)
		var out, want map[string]string
		if err != nil || json.Unmarshal(text, &out) != nil {
			t.Fatalf("%s: %v", text, err)
		}
		escaped, _ := json.Marshal(in)
		if err := json.Unmarshal(escaped, &want); err != nil {
			t.Fatal(err)
		}
		if len(out) != len(want) || bytes.ContainsRune(text, '\n') {
			t.Errorf("%q became %s", in, text)
		}
		for k, v := range want {
			if out[k] != v {
				t.Errorf("%q became %q", v, out[k])
			}
		}
		s := rapid.String().Draw(t, "text")
		for _, c := range []string{"<", ">", "&"} {
			if quoted := string(plainjson.Quote(s)); strings.Count(quoted, c) != strings.Count(s, c) {
				t.Errorf("%q became %s", s, quoted)
			}
		}
	})
}

func TestMarshalRefuses(t *testing.T) {
	if text, err := plainjson.Marshal(func() {}); err == nil {
		t.Errorf("a function became %s", text)
	}
}
