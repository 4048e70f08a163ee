package editdistance

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBetween(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"cpu", "", 3}, {"cpu", "cpu", 0}, {"cpus", "cpu", 1}, {"cpu", "cpx", 1}, {"cup", "cpu", 1}, {"ucp", "cpu", 2},
		{"maximumCpu", "maximumCpus", 1}, {strings.Repeat("a", 65), "a", 66},
	} {
		if got := Between(test.a, test.b); got != test.want {
			t.Errorf("%q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

// It is the same either way, 0 for equal words alone, and one slip makes it 1.
func TestOneSlip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c]{2,20}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if d := Between(a, b); d != Between(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Errorf("%d from %q to %q, %d back", d, a, b, Between(b, a))
		}
		at := rapid.IntRange(0, len(a)-2).Draw(t, "at")
		for what, slip := range map[string]string{
			"missing": a[:at] + a[at+1:], "too many": a[:at] + "x" + a[at:], "wrong": a[:at] + "x" + a[at+1:],
			"swapped": a[:at] + a[at+1:at+2] + a[at:at+1] + a[at+2:],
		} {
			if d := Between(a, slip); d != 1 && slip != a {
				t.Errorf("%s: %d from %q to %q", what, d, a, slip)
			}
		}
	})
}
