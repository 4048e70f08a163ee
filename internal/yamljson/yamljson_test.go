package yamljson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/yamltest"
)

// value draws any JSON value with ordered keys, as JSON text.
func value(depth int) *rapid.Generator[string] {
	str := rapid.Custom(func(t *rapid.T) string {
		s := rapid.OneOf(
			rapid.String(),
			rapid.SampledFrom([]string{"yes", "NO", "on", "0123", "0x1F", "1_000", "1:30", "12e3", "~", "", " a", "a ", "a\nb", "a\nb\n", "\n", "a\n\n", " x\ny", "#c", "a: b", "- a", "<<", "=", "2026-01-01", "\t", "é\u2028", "null", "a #b", "'", "\"", "{", "%", "@x", "|", ">", "? a", "!x", "&x", "*x", "---", "...", "a\r\nb",
				"a \nb", "a\nb ", "\ufeffa b", "a\ufeff\u00a0\ufffd\n b", "\u0085", "\U0001f600\nx", "y", "No", "aye: b", "a\n\n  b\n", strings.Repeat("k", 128), strings.Repeat("k ", 65) + "k"}),
		).Draw(t, "s")
		b, err := json.Marshal(strings.ToValidUTF8(s, ""))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	})
	scalar := rapid.OneOf(str, rapid.SampledFrom([]string{"null", "true", "false", "0", "-1", "1.0", "1.50", "1e5", "1E+3", "-0", "-0.0", "9007199254740993", "18446744073709551615", "123456789012345678901234567890"}))
	if depth == 0 {
		return scalar
	}
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return "[" + strings.Join(rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "items"), ",") + "]"
		case 1:
			keys := rapid.SliceOfNDistinct(str, 0, 4, rapid.ID[string]).Draw(t, "keys")
			var members []string
			seen := map[string]bool{}
			for _, k := range keys {
				var plain string
				_ = json.Unmarshal([]byte(k), &plain)
				if seen[plain] {
					continue
				}
				seen[plain] = true
				members = append(members, k+":"+value(depth-1).Draw(t, "member"))
			}
			return "{" + strings.Join(members, ",") + "}"
		default:
			return scalar.Draw(t, "scalar")
		}
	})
}

func canonical(t interface{ Fatal(...any) }, s string) string {
	var buf bytes.Buffer
	if err := json.Compact(&buf, []byte(s)); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// Whatever JSON goes in comes back byte for byte: order, number spelling, strings.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := value(3).Draw(t, "value")
		y, err := FromJSON(json.RawMessage(in))
		if err != nil {
			t.Fatalf("FromJSON(%s): %v", in, err)
		}
		out, err := ToJSON(y)
		if err != nil {
			t.Fatalf("ToJSON of\n%s: %v", y, err)
		}
		// A float may be spelled otherwise: YAML 1.1 wants a point in it.
		want, got := reencode(t, in), canonical(t, string(out))
		if want != got {
			t.Fatalf("%s\nbecame\n%s\nthrough\n%s", want, got, y)
		}
	})
}

// What is written is what the YAML library writes of the same value.
func TestFromJSONIsWhatTheLibraryWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := json.RawMessage(value(4).Draw(t, "value"))
		got, err := FromJSON(in)
		want, wantErr := yamltest.FromJSON(in)
		if err != nil || wantErr != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s became\n%s (%v), want\n%s (%v)", in, got, err, want, wantErr)
		}
	})
}

// An object is what its members are, one after the other.
func TestAppendMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type member struct{ key, value string }
		members := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) member {
			return member{rapid.StringN(0, 200, 400).Draw(t, "key"), value(2).Draw(t, "value")}
		}), 1, 5, func(m member) string { return m.key }).Draw(t, "members")
		var got []byte
		var whole []string
		for _, m := range members {
			var err error
			if s, plain := strings.CutPrefix(m.value, `"`); plain {
				var text string
				if err := json.Unmarshal([]byte(`"`+s), &text); err != nil {
					t.Fatal(err)
				}
				got = AppendText(got, m.key, text)
			} else if got, err = AppendMember(got, m.key, json.RawMessage(m.value)); err != nil {
				t.Fatal(err)
			}
			key, err := json.Marshal(m.key)
			if err != nil {
				t.Fatal(err)
			}
			whole = append(whole, string(key)+":"+m.value)
		}
		want, err := yamltest.FromJSON(json.RawMessage("{" + strings.Join(whole, ",") + "}"))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q, want %q (%v)", got, want, err)
		}
	})
}

func TestWhatIsNoJSON(t *testing.T) {
	for in, want := range map[string]string{
		``: "unexpected EOF", `{`: "unexpected EOF", `{"a":{"b":[1,`: "a.b[1]: unexpected EOF", `["a`: "[0]: unexpected EOF", `{"a"`: "unexpected EOF",
		`{"a":}`: "a: invalid character '}', want a value", `{"a":[1 2]}`: "a: invalid character '2', want a comma or ]",
		`{"a":1,}`: "invalid character '}', want a key", `{"a":1 "b":2}`: `invalid character '"', want a comma or }`, `{"a" 1}`: "invalid character '1', want a colon",
		`[1,]`: "[1]: invalid character ']', want a value", `[01]`: "invalid character '1', want a comma or ]", `[-]`: "[0]: invalid character ']', want a digit", `[1.]`: "[0]: invalid character ']', want a digit",
		`[1e]`: "[0]: invalid character ']', want a digit", `nul`: "invalid character 'n', want a value", "[\"\n\"]": "[0]: invalid character '\\n', want none below U+0020 in a string",
		`["\x"]`: "[0]: invalid character 'x' in string escape code", `1 2`: "has data after the JSON value", "[\"\xff\"]": "is not valid UTF-8", `{"a":1,"a":2}`: `key "a" appears twice`,
		strings.Repeat("[", 101) + strings.Repeat("]", 101): "nested deeper than 100 levels",
		"{\"k0\":0," + manyKeys(40) + ",\"k39\":1}":         `key "k0" appears twice`,
		"{" + manyKeys(40) + ",\"k39\":1}":                  `key "k39" appears twice`,
	} {
		_, err := FromJSON(json.RawMessage(in))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

// manyKeys are members k0 and on.
func manyKeys(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"k%d":{}`, i))
	}
	return strings.Join(out, ",")
}

// reencode gives strings and floats one spelling and leaves everything else alone.
func reencode(t *rapid.T, s string) string {
	out, err := Canonical(json.RawMessage(s))
	if err != nil {
		t.Fatal(err)
	}
	return canonical(t, string(out))
}

func TestToJSON(t *testing.T) {
	for _, tt := range []struct{ name, in, want, err string }{
		{"order and types", "b: 1\na: 1.0\nc: 0x10\n", `{"b":1,"a":1.0,"c":16}`, ""},
		{"keys with slashes", "/dev/vdb: {_x: yes}\n", `{"/dev/vdb":{"_x":"yes"}}`, ""},
		{"anchors", "a: &x [1]\nb: *x\n", `{"a":[1],"b":[1]}`, ""},
		{"empty", "", `null`, ""},
		{"duplicate", "a: 1\nb: 2\na: 3\n", "", `line 3: duplicate key "a", first on line 1`},
		{"second document", "a: 1\n---\nb: 2\n", "", "second document"},
		{"infinity", "a: .inf\n", "", "line 1: .inf"},
		{"bomb", bomb(), "", "aliases of the document expand too far"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ToJSON([]byte(tt.in))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		p := string(rune('0' + i - 1))
		n := string(rune('0' + i))
		b.WriteString("a" + n + ": &a" + n + " [" + strings.TrimSuffix(strings.Repeat("*a"+p+",", 10), ",") + "]\n")
	}
	return b.String()
}
