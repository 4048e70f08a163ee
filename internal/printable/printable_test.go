package printable_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/vmop/sdk/internal/printable"
	"pgregory.net/rapid"
)

// Nothing comes out that cannot be printed, but what is kept; what can be is as it was.
func TestEscape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		keep := func(r rune) bool { return r == '\n' }
		out := printable.Escape(s, keep)
		if strings.ContainsFunc(out, func(r rune) bool { return !unicode.IsPrint(r) && !keep(r) }) {
			t.Errorf("%q became %q", s, out)
		}
		if printable.Escape(out, keep) != out || strings.Count(out, "\n") != strings.Count(s, "\n") {
			t.Errorf("%q became %q", s, out)
		}
		if cell := printable.Cell(s); strings.ContainsFunc(cell, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q became %q", s, cell)
		}
	})
	if got := printable.Cell("a\x1b[1m\n"); got != `a\u001b[1m\u000a` {
		t.Errorf("%s", got)
	}
}
