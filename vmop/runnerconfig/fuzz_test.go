package runnerconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/costtest"
)

// price is what a configuration may cost.
var price = costtest.Price{Memory: 16 << 20, PerByte: 3000, TimePerByte: 100 * time.Microsecond}

// attacks are configurations that were expensive once, or look as if.
func attacks() map[string]string {
	return map[string]string{
		// This one stopped the operator of a whole cluster.
		"aliases of a long text":  "/Runner: {vm: {name: a}}\na: &a " + strings.Repeat("x", 400<<10) + "\nb: [" + strings.Repeat("*a,", 100_000) + "]\n",
		"54 KiB":                  "/Runner: {vm: {name: a}}\na: &a " + strings.Repeat("x", 27<<10) + "\nb: [" + strings.Repeat("*a,", 9<<10) + "]\n",
		"many networks":           "/Runner: {vm: {name: a, network: [" + strings.Repeat("{},", 100_000) + "]}}",
		"many unknown keys":       "/Runner: {vm: {name: a, network: [" + strings.Repeat("{x: 1},", 50_000) + "]}}",
		"a long key":              "/Runner: {cloudInit: {userData: {? " + strings.Repeat("k", 200<<10) + " : [" + strings.Repeat("1,", 100_000) + "]}}, vm: {name: a}}",
		"a size of many digits":   "/Runner: {vm: {name: a, maximumRam: '" + strings.Repeat("9", 500_000) + "'}}",
		"a size of many decimals": "/Runner: {vm: {name: a, maximumRam: 1." + strings.Repeat("9", 500_000) + "}}",
		"more than a ConfigMap":   strings.Repeat("#\n", 2<<20),
	}
}

func TestConfigurationsCostInProportion(t *testing.T) {
	for name, in := range attacks() {
		t.Run(name, func(t *testing.T) {
			price.Hold(t, []byte(in), func() {
				if _, warnings, _ := Parse([]byte(in)); len(strings.Join(warnings, "\n")) > 64<<10 {
					t.Error("a report that nobody reads")
				}
			})
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, in := range attacks() {
		if len(in) < 64<<10 {
			f.Add(in)
		}
	}
	f.Add("/Runner:\n  vm:\n    name: a\n    maximumRam: 4 GiB\n    network: null\n    drives: [{type: raw, resource: /dev/disk-0}]\n")
	f.Fuzz(func(t *testing.T, in string) {
		price.Hold(t, []byte(in), func() {
			c, _, err := Parse([]byte(in))
			if err != nil {
				return
			}
			Default(&c)
			_ = Validate(&c)
			if _, err := Marshal(c); err != nil {
				t.Fatalf("what was parsed cannot be written: %v", err)
			}
		})
	})
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"4 GiB", "1G", "0.5 kB", " 12345 ", "1.7976931348623157e308", "99999999999999999999 EiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		price.Hold(t, []byte(s), func() {
			b, err := ParseBytes(s)
			if err != nil {
				if len(err.Error()) > 500 {
					t.Fatalf("an error of %d bytes", len(err.Error()))
				}
				return
			}
			if again, err := ParseBytes(b.String()); b < 0 || err != nil || again != b {
				t.Fatalf("%q is %d, written as %q, which is %d (%v)", s, b, b, again, err)
			}
		})
	})
}

func FuzzParseOutcome(f *testing.F) {
	f.Add(`{"cause":"guest-shutdown","message":"x","orderly":true}`)
	f.Add(`{"cause":"` + strings.Repeat("x", 5000) + `"}`)
	f.Fuzz(func(t *testing.T, s string) {
		price.Hold(t, []byte(s), func() {
			if o, ok := ParseOutcome(s); ok && len(o.TerminationMessage()) > maxTerminationMessage {
				t.Fatal("it does not fit back")
			}
		})
	})
}
