package limits

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What is checked in every decision is checked without regular expressions, and by them.
func TestWordsAreThoseOfTheirPatterns(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "Z", "0", "_", "-", "+", ".", ",", "=", ":", "/", " ", "é", "host", "\n", "\x00"})
	patterns := map[string]struct {
		is      func(string) bool
		pattern *regexp.Regexp
	}{
		"CPU":    {isCPU, regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(,[+-]?[A-Za-z0-9_][A-Za-z0-9_.-]*(=[A-Za-z0-9_.:+-]+)?)*$`)},
		"scheme": {isScheme, regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)},
	}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
		for what, p := range patterns {
			if got, want := p.is(s), p.pattern.MatchString(s); got != want {
				t.Fatalf("%q is a %s: %v, want %v", s, what, got, want)
			}
		}
	})
}
