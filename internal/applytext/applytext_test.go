package applytext

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// check holds Escape to both of its promises: JSON reads the same in it as
// before, and the API server's YAML parser reads that, too.
func check(t interface{ Fatalf(string, ...any) }, text []byte) {
	var want, json2, yaml1 any
	if err := json.Unmarshal(text, &want); err != nil {
		return
	}
	out := Escape(text)
	if err := json.Unmarshal(out, &json2); err != nil || !reflect.DeepEqual(want, json2) {
		t.Fatalf("%q became %q, another JSON value (%v)", text, out, err)
	}
	if err := yaml.Unmarshal(out, &yaml1); err != nil {
		t.Fatalf("%q became %q, which is no YAML: %v", text, out, err)
	}
	if !reflect.DeepEqual(want, yaml1) {
		t.Fatalf("%q became %q, another YAML value: %#v", text, out, yaml1)
	}
}

func TestEveryCharacterArrives(t *testing.T) {
	for r := rune(0); r <= 0x10ffff; r++ {
		if r > 0x11000 && r&0xffff > 0 && r&0xffff < 0xfff0 {
			continue
		}
		text, err := json.Marshal(map[string]string{"a": "x" + string(r) + "y", "k" + string(r): ""})
		if err != nil {
			t.Fatal(err)
		}
		check(t, text)
	}
}

func TestEscapesOfJSONArrive(t *testing.T) {
	for _, text := range []string{
		`{"a":"\/ \ud83d\ude00 \ud83d \ude00\ud83d x \u007f \\u007f \\/ \""}`, `{"\/":"\ufffe","\u0085":"\ufeff"}`,
		`{"<<":"x","=":"y","~":"null"}`, `{"<<":{"a":"b"}}`, "{\"a\":\"\u0085\u2028\u2029\ufeff\"}",
	} {
		check(t, []byte(text))
	}
}

func TestAnyJSONArrives(t *testing.T) {
	odd := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("\x7f\u0080\u0085\u009f\u2028\ufeff\ufffe\uffff\\/\"\t\x00<&:#"))))
	rapid.Check(t, func(t *rapid.T) {
		value := map[string]any{odd.Draw(t, "key"): odd.Draw(t, "text"), "list": []any{odd.Draw(t, "item"), true, nil, map[string]any{odd.Draw(t, "inner"): "x"}}}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		check(t, text)
	})
}

func FuzzEscape(f *testing.F) {
	f.Add("Debian\x7f", "a\u0085b")
	f.Add("0&&&"+strings.Repeat("\xb7", 200)+"&", "&&&&&&") // six bytes for each
	f.Fuzz(func(t *testing.T, key, value string) {
		if written, err := json.Marshal(key); err != nil || len(written) > 1000 {
			return // YAML's limit
		}
		text, err := json.Marshal(map[string]string{key: value})
		if err != nil {
			t.Fatal(err)
		}
		check(t, text)
		if len(Escape([]byte(value))) > 6*len(value)+16 {
			t.Fatalf("%q becomes too long", value)
		}
		Escape([]byte(key)) // any bytes
	})
}

// Only applies are changed, and with their length.
func TestWrap(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
	}))
	defer server.Close()
	client := http.Client{Transport: Wrap(http.DefaultTransport)}
	for kind, want := range map[string]string{
		string(types.ApplyYAMLPatchType): `{"a":"x\u007f"}`, string(types.ApplyYAMLPatchType) + "; charset=utf-8": `{"a":"x\u007f"}`,
		string(types.MergePatchType): "{\"a\":\"x\x7f\"}",
	} {
		r, err := http.NewRequest(http.MethodPatch, server.URL, strings.NewReader("{\"a\":\"x\x7f\"}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got != want {
			t.Errorf("%s: the server read %q, want %q", kind, got, want)
		}
	}
}
