package yamljson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/costtest"
	"github.com/vmop/sdk/internal/yamltest"
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
		if _, err := FromJSON(in); err != nil {
			t.Fatal(err)
		}
	})
	_, err := FromJSON([]byte(`{"a": {"b": [1, 1e999]}}`))
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

// FuzzFromJSON holds what is written to what the YAML library makes of the same value, which
// its parser has to get back, and the canonical spelling to the way through the library.
func FuzzFromJSON(f *testing.F) {
	f.Add([]byte(`{"a": [1, 1.50, "x\u007fy", null, {"": true}]}`))
	f.Add([]byte(`{"a": 1e5, "a": 2}`))
	f.Add([]byte(`[[{"a\nb": [{}, []], "c": "d \n e\n"}], "\ufeffx", "\ud83d\ude00\udc00", "a\u0085\u2028"]`))
	f.Add([]byte(`{"` + strings.Repeat("k", 129) + `": {"a": "b\nc"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		bounded(t, in, func(in []byte) {
			text, err := FromJSON(in)
			node, wantErr := yamltest.Node(in)
			if (err == nil) != (wantErr == nil) || Check(in) == nil != (err == nil) {
				t.Fatalf("%q: %v, and the library says %v", in, err, wantErr)
			}
			if err != nil {
				// What is no JSON is told in other words.
				if json.Valid(in) && err.Error() != wantErr.Error() {
					t.Fatalf("%q: %v, want %v", in, err, wantErr)
				}
				return
			}
			want, err := yamltest.Encode(node)
			if err != nil || !bytes.Equal(text, want) {
				t.Fatalf("%q became\n%q, want\n%q (%v)", in, text, want, err)
			}
			again, err := ToJSON(text)
			if err != nil {
				t.Fatalf("%q became %q: %v", in, text, err)
			}
			canonical, err := Canonical(in)
			if err != nil || !bytes.Equal(again, canonical) {
				t.Fatalf("%q became %q, which is %s, and by itself %s (%v)", in, text, again, canonical, err)
			}
			if want, err := NodeToJSON(node); err != nil || !bytes.Equal(want, canonical) {
				t.Fatalf("%q is %s in its one spelling, want %s (%v)", in, canonical, want, err)
			}
		})
	})
}
