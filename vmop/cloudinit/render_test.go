package cloudinit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/cloudinit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A member is one entry of an object whose order matters.
type member struct {
	Key   string
	Value any
}

// object is a JSON object with its order. Other values are string, bool, nil,
// json.Number and []any.
type object []member

// appendJSON writes v as JSON with its order.
func appendJSON(b []byte, v any) []byte {
	quote := func(s string) []byte {
		q, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return q
	}
	switch v := v.(type) {
	case object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, quote(m.Key)...), ':')
			b = appendJSON(b, m.Value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, e)
		}
		return append(b, ']')
	case string:
		return append(b, quote(v)...)
	case json.Number:
		return append(b, v...)
	default:
		return fmt.Append(b, map[any]string{nil: "null", true: "true", false: "false"}[v])
	}
}

// fromYAML reads a YAML node back into the same shape. It takes what the parser
// resolved, not what the text looks like.
func fromYAML(t *rapid.T, n *yaml.Node) any {
	switch n.Kind {
	case yaml.DocumentNode:
		return fromYAML(t, n.Content[0])
	case yaml.MappingNode:
		o := object{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.ShortTag() != "!!str" {
				t.Fatalf("key %q is a %s", key.Value, key.ShortTag())
			}
			o = append(o, member{key.Value, fromYAML(t, n.Content[i+1])})
		}
		return o
	case yaml.SequenceNode:
		s := []any{}
		for _, e := range n.Content {
			s = append(s, fromYAML(t, e))
		}
		return s
	}
	switch n.ShortTag() {
	case "!!str":
		return n.Value
	case "!!int", "!!float":
		return json.Number(n.Value)
	case "!!bool":
		return n.Value == "true"
	case "!!null":
		return nil
	}
	t.Fatalf("unexpected %s %q", n.ShortTag(), n.Value)
	return nil
}

// sameValue compares numbers by value and by kind, everything else exactly.
var sameValue = cmp.Comparer(func(a, b json.Number) bool {
	isInt := func(n json.Number) bool { return !strings.ContainsAny(string(n), ".eE") }
	if isInt(a) != isInt(b) {
		return false
	}
	if isInt(a) {
		x, ok1 := new(big.Int).SetString(string(a), 10)
		y, ok2 := new(big.Int).SetString(string(b), 10)
		return ok1 && ok2 && x.Cmp(y) == 0
	}
	x, err1 := strconv.ParseFloat(string(a), 64)
	y, err2 := strconv.ParseFloat(string(b), 64)
	return err1 == nil && err2 == nil && x == y
})

// awkward are strings with which YAML writers and readers are known to fail.
var awkward = []string{
	"", " ", "~", "null", "Null", "true", "False", "yes", "NO", "on", "Off", "y", "N", "=", "<<", "!", "!!str", "&a", "*a",
	"0", "-1", "+1", "1_000", "0x1f", "0o17", "017", "0b1", "1.5", ".5", "1e3", "1.0e+3", ".inf", "-.Inf", ".nan", "190:20:30",
	"2001-01-01", "2001-12-14t21:59:43.10-05:00", "- a", "-", "--", "---", "...", "? a", "a: b", "a:", ": a", "a #b", "#a",
	"[a", "{a", "a, b", "|", ">", "%a", "@a", "`a", "'", "\"", "\\", "\t", "a\tb", "a ", " a", "\n", "\n\n", "a\n", "a\n\n",
	"\na", " a\nb", "\ta\nb", "a\n b", "a\n\tb\n", "a \nb", "a\n\nb\n", "a\n \n", "a\n  ", "a\r\nb", "a\rb", "a\x00b", "\x7f",
	"a\u0085b\nc", "a\u2028b\nc", "\ufeffa\nb", "ä\n日本\n", "😀", "😀\nb", "/dev/vdb", "_x", "http://a.b:1/c?d=e&f", "a\n---\nb\n",
	"a\n...\nb", "#cloud-config\nx\n", strings.Repeat("long ", 60), strings.Repeat("k", 2000), "key with: colon\nand lines",
}

func anyString() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(awkward),
		rapid.String(),
		rapid.StringOf(rapid.SampledFrom([]rune("ab 01:.-#'\"\n\t\r{}[]&*!|>%@`,?=~<\\/_eEö\u0085\u00a0\u2028\ufeff😀"))),
	)
}

func anyNumber() *rapid.Generator[json.Number] {
	return rapid.Custom(func(t *rapid.T) json.Number {
		if rapid.Bool().Draw(t, "integer") {
			return json.Number(strconv.FormatInt(rapid.Int64().Draw(t, "int"), 10))
		}
		if rapid.Bool().Draw(t, "unsigned") {
			return json.Number(strconv.FormatUint(rapid.Uint64().Draw(t, "uint"), 10))
		}
		format := rapid.SampledFrom([]byte("eEfg")).Draw(t, "format")
		f := rapid.Float64Range(-1e300, 1e300).Draw(t, "float")
		return json.Number(strconv.FormatFloat(f, format, -1, 64))
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		anyString().AsAny(),
		anyNumber().AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	nested := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) })
	list := rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(nested, 0, 4).Draw(t, "list") })
	return rapid.OneOf(append(scalars, list, anyObject(depth-1).AsAny())...)
}

func anyObject(depth int) *rapid.Generator[object] {
	return rapid.Custom(func(t *rapid.T) object {
		o := object{}
		for _, key := range rapid.SliceOfNDistinct(anyString(), 0, 5, rapid.ID).Draw(t, "keys") {
			o = append(o, member{key, anyValue(depth).Draw(t, "value")})
		}
		return o
	})
}

// Reading what was rendered gives the same values of the same types in the same
// order, whatever they are.
func TestRenderedYAMLMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyObject(4).Draw(t, "userData")
		raw := appendJSON(nil, want)
		docs, err := cloudinit.Render(cloudinit.Input{UserData: raw, NetworkConfig: raw})
		if err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		header, body, _ := bytes.Cut(docs.UserData, []byte("\n"))
		if string(header) != "#cloud-config" {
			t.Fatalf("user-data begins with %q", header)
		}
		if !bytes.Equal(body, docs.NetworkConfig) {
			t.Fatal("the same object is rendered in two ways")
		}
		var node yaml.Node
		if err := yaml.Unmarshal(body, &node); err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		if diff := cmp.Diff(any(want), fromYAML(t, &node), sameValue); diff != "" {
			t.Fatalf("-JSON +YAML\n%s\n%s", diff, body)
		}
		again, err := cloudinit.Render(cloudinit.Input{UserData: raw, NetworkConfig: raw})
		if err != nil || !cmp.Equal(docs, again) {
			t.Fatalf("not the same twice: %v", err)
		}
	})
}

func TestRenderedMetaDataMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOfN(anyString(), anyString(), 0, 8).Draw(t, "metaData")
		docs, err := cloudinit.Render(cloudinit.Input{MetaData: want})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		if err := yaml.Unmarshal(docs.MetaData, &got); err != nil {
			t.Fatalf("%v\n%s", err, docs.MetaData)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got\n%s\n%s", diff, docs.MetaData)
		}
	})
}

// Lists and mappings of meta-data stand behind the texts, which count.
func TestMetaDataThatIsNested(t *testing.T) {
	docs, err := cloudinit.Render(cloudinit.Input{
		MetaData:       map[string]string{"instance-id": "5", "zone": "a"},
		MetaDataValues: map[string]json.RawMessage{"keys": json.RawMessage(`["yes", 1.0]`), "zone": json.RawMessage(`["b"]`), "extra": json.RawMessage(`{"c": {}}`)},
	})
	const want = "instance-id: \"5\"\nzone: a\nextra:\n  c: {}\nkeys:\n  - \"yes\"\n  - 1.0\n"
	if got := string(docs.MetaData); got != want || err != nil {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	_, err = cloudinit.Render(cloudinit.Input{MetaDataValues: map[string]json.RawMessage{"a": json.RawMessage(`[`)}})
	if err == nil || !strings.Contains(err.Error(), `metaData: "a": `) {
		t.Errorf("%v", err)
	}
}

// The guest reads with YAML 1.1, the tests with a newer version: the texts that
// the older one takes for something else have to be seen in the output.
func TestRenderGolden(t *testing.T) {
	const userData = `{
		"zebra": "first", "apple": "second",
		"strings": ["yes", "No", "on", "y", "~", "null", "1", "0x1f", "0o7", "1e3", "1_000", "12:30:45", "2001-01-01", ".5", "=", "<<", "plain words", "a: b", ""],
		"numbers": [0, -1, 9007199254740993, 18446744073709551615, 123456789012345678901234567890, 1.0, 1e5, 1.5E-7, -2e+3],
		"others": [true, false, null, {}, [], [[1, [2]], {"a": {"b": []}}]],
		"disk_setup": {"/dev/vdb": {"table_type": "gpt", "layout": true, "_private": 1}, "yes": 1, "2": 2},
		"write_files": [{"path": "/run/a.sh", "content": "#!/bin/sh\n\tif true; then\n\techo 'grüß dich' >/dev/ttyS0\nfi\n"}, {"content": "no newline\nat the end"}, {"content": "tail \nspace"}],
		"emoji": "😀"
	}`
	docs, err := cloudinit.Render(cloudinit.Input{
		MetaData:      map[string]string{"local-hostname": "vm", "instance-id": "v1", "serial": "0123", "public": "yes"},
		UserData:      json.RawMessage(userData),
		NetworkConfig: json.RawMessage(`{"version": 2, "ethernets": {"nic0": {"match": {"macaddress": "52:54:00:00:00:01"}, "dhcp4": true}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("== meta-data\n%s== user-data\n%s== network-config\n%s", docs.MetaData, docs.UserData, docs.NetworkConfig)
	const path = "testdata/documents.golden"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got, run with -update to accept\n%s", diff)
	}
}

func TestRenderOfNothing(t *testing.T) {
	for _, absent := range []json.RawMessage{nil, json.RawMessage(""), json.RawMessage(" null ")} {
		docs, err := cloudinit.Render(cloudinit.Input{UserData: absent, NetworkConfig: absent})
		if err != nil {
			t.Fatal(err)
		}
		want := cloudinit.Documents{MetaData: []byte("{}\n"), UserData: []byte("#cloud-config\n{}\n")}
		if diff := cmp.Diff(want, docs); diff != "" {
			t.Errorf("%q: -want +got\n%s", absent, diff)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	if _, err := cloudinit.Render(cloudinit.Input{UserData: json.RawMessage(deep(cloudinit.MaxDepth))}); err != nil {
		t.Errorf("the deepest object allowed: %v", err)
	}
	for _, c := range []struct{ raw, want string }{
		{`[]`, "must be an object"},
		{`"x"`, "must be an object"},
		{`{`, "unexpected EOF"},
		{`{"a":{"b":[1,`, "unexpected EOF"},
		{`{} {}`, "after the JSON value"},
		{`{"a":{"b":1,"b":2}}`, `a: key "b" appears twice`},
		{`{"a":[1e999]}`, "a[0]: number 1e999 is out of range"},
		{"{\"a\":\"\xff\"}", "not valid UTF-8"},
		{deep(cloudinit.MaxDepth + 1), "nested deeper"},
		{`{"a":}`, "invalid character"},
		{`{1:2}`, ""},
	} {
		_, err := cloudinit.Render(cloudinit.Input{UserData: json.RawMessage(c.raw), NetworkConfig: json.RawMessage(c.raw)})
		if err == nil {
			t.Errorf("%.40s is accepted", c.raw)
			continue
		}
		if errors.Is(err, cloudinit.ErrNotAnObject) != (c.want == "must be an object") {
			t.Errorf("%.40s: errors.Is is wrong for %v", c.raw, err)
		}
		for _, part := range []string{"userData: ", "networkConfig: ", c.want} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%.40s: error %q does not contain %q", c.raw, err, part)
			}
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x",null,true,{"/b":{}}]}`))
	for _, s := range awkward {
		f.Add(appendJSON(nil, object{{s, s}}))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		docs, err := cloudinit.Render(cloudinit.Input{UserData: raw})
		if err != nil {
			return
		}
		var fromJSON, got any
		if err := json.Unmarshal(raw, &fromJSON); err != nil && len(bytes.TrimSpace(raw)) > 0 {
			t.Fatalf("accepted what is not JSON: %v", err)
		}
		if err := yaml.Unmarshal(docs.UserData, &got); err != nil {
			t.Fatalf("%v\n%s", err, docs.UserData)
		}
	})
}
