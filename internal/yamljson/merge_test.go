package yamljson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func mergedJSON(t interface{ Fatal(...any) }, text string) (string, error) {
	doc, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := Merge(doc); err != nil {
		return "", err
	}
	out, err := NodeToJSON(doc)
	return string(out), err
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct{ in, want string }{ // want begins with ! for an error
		{"a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n", `{"a":{"x":1,"y":2},"b":{"y":3,"x":1}}`},
		{"a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n", `{"a":{"x":1},"b":{"x":2,"y":2},"c":{"x":1,"y":2}}`},
		{"a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, z: 3}\n", `{"a":{"x":1},"b":{"y":2,"x":1},"c":{"z":3,"y":2,"x":1}}`},
		{"c: {<<: &b {<<: &a {x: 1}, y: 2}}\n", `{"c":{"y":2,"x":1}}`},
		{"a: &a {x: {deep: [1]}}\nb: {<<: *a}\n", `{"a":{"x":{"deep":[1]}},"b":{"x":{"deep":[1]}}}`},
		{"<<: {x: 1}\ny: 2\n", `{"y":2,"x":1}`},
		{"- {<<: []}\n", `[{}]`},
		{"{\"<<\": 1}\n", `{"<<":1}`},
		{"a: &a x\n<<: {*a : 1}\n", `{"a":"x","x":1}`},
		{"a: 1\nb: {<<: 2}\n", "!line 2: the key << takes a mapping or a list of mappings"},
		{"b: {<<: [{}, 2]}\n", "!line 1: the key << takes"},
		{"a: &a\n  b: {<<: *a}\n", "!line 2: the key << has a mapping that it is part of"},
		{"a: &a {<<: {x: 1, x: 2}}\n", `{"a":{"x":1}}`},
	} {
		got, err := mergedJSON(t, tt.in)
		if want, refused := strings.CutPrefix(tt.want, "!"); refused && (err == nil || !strings.Contains(err.Error(), want)) || !refused && (err != nil || got != tt.want) {
			t.Errorf("%s: %s, %v; want %s", tt.in, got, err, tt.want)
		}
	}
}

// What merge keys bring in is in proportion to the document.
func TestMergeIsBounded(t *testing.T) {
	var wide, long strings.Builder
	wide.WriteString("a: &a {")
	for i := range 5000 {
		fmt.Fprintf(&wide, "k%d: 1,", i)
	}
	wide.WriteString("}\n")
	long.WriteString("a: &a {x: \"" + strings.Repeat("x", 100<<10) + "\"}\n")
	for i := range 5000 {
		fmt.Fprintf(&wide, "b%d: {<<: *a}\n", i)
		fmt.Fprintf(&long, "b%d: {<<: *a}\n", i)
	}
	for name, tt := range map[string]struct{ in, want string }{
		"many keys, many times": {wide.String(), "bring in more than 10000 keys"},
		"a long value":          {long.String(), "the aliases of the document expand too far"},
		"deep":                  {strings.Repeat("{<<: ", 1500) + "{}" + strings.Repeat("}", 1500), "nested deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			bounded(t, []byte(tt.in), func(in []byte) {
				if _, err := mergedJSON(t, string(in)); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%.200v, want %s", err, tt.want)
				}
			})
		})
	}
}

// Merged documents are what the YAML library itself makes of them.
func TestMergeIsWhatTheLibraryDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		key := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		n := rapid.IntRange(1, 6).Draw(t, "mappings")
		for i := range n {
			fmt.Fprintf(&b, "m%d: &m%d {", i, i)
			for j, k := range rapid.SliceOfNDistinct(key, 0, 4, rapid.ID[string]).Draw(t, "keys") {
				fmt.Fprintf(&b, "%s: %d%d, ", k, i, j)
			}
			if i > 0 {
				switch before := rapid.SliceOfN(rapid.IntRange(0, i-1), 0, 3).Draw(t, "merged"); len(before) {
				case 0:
				case 1:
					fmt.Fprintf(&b, "<<: *m%d", before[0])
				default:
					fmt.Fprintf(&b, "<<: [")
					for _, m := range before {
						fmt.Fprintf(&b, "*m%d, ", m)
					}
					fmt.Fprintf(&b, "]")
				}
			}
			fmt.Fprintf(&b, "}\n")
		}
		var want, got map[string]map[string]int
		if err := yaml.Unmarshal(b.Bytes(), &want); err != nil {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
		out, err := mergedJSON(t, b.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got\n%s\n%s", diff, b.Bytes())
		}
	})
}
