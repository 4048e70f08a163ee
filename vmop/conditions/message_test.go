package conditions_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/conditions"
)

func TestBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringN(1, 40, 160).Draw(t, "part")
		text := strings.Repeat(part, rapid.IntRange(0, 2*conditions.MaxMessage/len(part)).Draw(t, "times"))
		got := conditions.Bounded(text)
		switch {
		case len(got) > conditions.MaxMessage || !utf8.ValidString(got):
			t.Fatalf("%d bytes", len(got))
		case len(text) <= conditions.MaxMessage && got != text:
			t.Fatalf("%q became %q", text, got)
		case len(text) > conditions.MaxMessage && !strings.HasPrefix(text, got[:conditions.MaxMessage-200]):
			t.Fatal("it is another message")
		}
	})
}
