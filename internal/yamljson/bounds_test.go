package yamljson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/costtest"
)

// price is what a conversion may cost. The parser makes a node of some 250 bytes of
// every two or three characters.
var price = costtest.Price{Memory: 16 << 20, PerByte: 1200, TimePerByte: 50 * time.Microsecond}

// bounded runs one conversion and fails if it takes memory or time that are out of
// proportion to its input.
func bounded(t interface{ Fatalf(string, ...any) }, in []byte, convert func([]byte)) {
	price.Hold(t, in, func() { convert(in) })
}

// toJSON converts and checks the size of the output.
func toJSON(t interface{ Fatalf(string, ...any) }) func([]byte) {
	return func(in []byte) {
		out, err := ToJSON(in)
		if err == nil && len(out) > 8*len(in)+16+MaxAliased {
			t.Fatalf("%d bytes became %d", len(in), len(out))
		}
		if err == nil && !json.Valid(out) {
			t.Fatalf("no JSON: %.200q", out)
		}
	}
}

// attacks are small inputs that were expensive once, or look as if.
func attacks() map[string][]byte {
	long := strings.Repeat("x", 400<<10)
	return map[string][]byte{
		"one long text, a hundred thousand aliases": []byte("a: &a " + long + "\nb: [" + strings.Repeat("*a,", 100_000) + "]\n"),
		"54 KiB":                       []byte("a: &a " + strings.Repeat("x", 27<<10) + "\nb: [" + strings.Repeat("*a,", 9<<10) + "]\n"),
		"aliases as keys":              []byte("a: &a " + long + "\nb:\n" + strings.Repeat("- {*a : 1}\n", 1000)),
		"aliases of aliases":           []byte(bomb()),
		"an alias of itself":           []byte("a: &a [*a, *a]\n"),
		"deep":                         []byte(strings.Repeat("[", 9000) + strings.Repeat("]", 9000)),
		"too deep":                     []byte(strings.Repeat("[", 100_000)),
		"a long key around many items": []byte("{\"" + long + "\": [" + strings.Repeat("1,", 100_000) + "1]}"),
		"many nulls":                   []byte("[" + strings.Repeat("~,", 100_000) + "]"),
		"many comments":                []byte(strings.Repeat("#\n", 100_000) + "a: 1\n"),
		"a long number":                []byte("a: 0x" + strings.Repeat("f", 400<<10)),
		"a long decimal":               []byte("a: " + strings.Repeat("9", 400<<10)),
		"many keys":                    []byte("{" + strings.Repeat("? a,", 100_000) + "}"),
	}
}

func TestWhatOthersWroteCostsInProportion(t *testing.T) {
	for name, in := range attacks() {
		t.Run(name, func(t *testing.T) { bounded(t, in, toJSON(t)) })
	}
}

// A key is not copied for each of the values inside of it.
func TestLongKeysCostOnce(t *testing.T) {
	key := strings.Repeat("k", 200<<10)
	in := []byte(`{"` + key + `": [` + strings.Repeat("1,", 100_000) + `1]}`)
	bounded(t, in, func(in []byte) {
		if _, err := JSONToNode(in); err != nil {
			t.Fatal(err)
		}
	})
	_, err := JSONToNode([]byte(`{"a": {"b": [1, 1e999]}}`))
	if err == nil || err.Error() != "a.b[1]: number 1e999 is out of range" {
		t.Fatalf("error %v", err)
	}
}

func TestCostIsBounded(t *testing.T) {
	word := rapid.SampledFrom([]string{"&a ", "*a", "[", "]", "{", "}", ",", ": ", "\n", "- ", "? ", "#", "|", ">", "'", "\"", "x", "0", "~", "!!str ", "<<", "\n  ", "---\n", "\\x01", "é"})
	rapid.Check(t, func(t *rapid.T) {
		bounded(t, []byte(strings.Join(rapid.SliceOfN(word, 0, 300).Draw(t, "words"), "")), toJSON(t))
	})
}

func FuzzToJSON(f *testing.F) {
	for _, in := range attacks() {
		if len(in) < 64<<10 {
			f.Add(in)
		}
	}
	f.Add([]byte("a: &x [1]\nb: *x\nc: 0x10\nd: \"\\u007f\"\n"))
	f.Fuzz(func(t *testing.T, in []byte) { bounded(t, in, toJSON(t)) })
}

// FuzzJSONToNode holds the way back to JSON's own reading of the input.
func FuzzJSONToNode(f *testing.F) {
	f.Add([]byte(`{"a": [1, 1.50, "x\u007fy", null, {"": true}]}`))
	f.Add([]byte(`{"a": 1e5, "a": 2}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		bounded(t, in, func(in []byte) {
			node, err := JSONToNode(in)
			if err != nil {
				return
			}
			text, err := Encode(node)
			if err != nil {
				t.Fatalf("%q: %v", in, err)
			}
			// The parser has to get back what was put in.
			var again yaml.Node
			if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&again); err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("%q became %q: %v", in, text, err)
			}
			want, err := NodeToJSON(node)
			if err != nil {
				t.Fatal(err)
			}
			got, err := NodeToJSON(&again)
			if err != nil || !bytes.Equal(want, got) {
				t.Fatalf("%q became %q, which is %s, not %s (%v)", in, text, got, want, err)
			}
		})
	})
}
