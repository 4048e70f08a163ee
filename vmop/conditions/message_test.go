package conditions_test

import (
	"fmt"
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

// What is cut is a line, begins as the text does, and is cut only where it must be.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 300, 300).Draw(t, "text")
		beside := rapid.IntRange(0, 2*conditions.Line).Draw(t, "beside")
		got, whole := conditions.Fit(text, beside)
		switch {
		case whole != (len(text)+beside <= conditions.Line) || whole && got != text:
			t.Fatalf("%q of %q", got, text)
		case !whole && (!strings.HasSuffix(got, "…") || !strings.HasPrefix(text, strings.TrimSuffix(got, "…"))):
			t.Fatalf("%q is not the beginning of %q", got, text)
		case utf8.ValidString(text) && !utf8.ValidString(got):
			t.Fatalf("%q", got)
		case !whole && beside <= conditions.Line-len("…") && len(got)+beside > conditions.Line:
			t.Fatalf("%d bytes, and %d beside them", len(got), beside)
		case !whole && len(got)+beside < conditions.Line/2:
			t.Fatalf("%q is little of %q", got, text)
		}
	})
}

// A list has its first texts, says how many it leaves out, and is a line unless its first text
// is none.
func TestList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,90}`), 0, 12).Draw(t, "texts")
		beside := rapid.IntRange(0, 60).Draw(t, "beside")
		got, left := conditions.List(texts, "; ", beside)
		told := len(texts) - len(left)
		want := strings.Join(texts[:told], "; ")
		if len(left) > 0 {
			want += fmt.Sprintf("; and %d more", len(left))
		}
		if got != want || len(texts) > 0 && told == 0 {
			t.Fatalf("%q of %q", got, texts)
		}
		if told > 1 && len(got)+beside > conditions.Line {
			t.Fatalf("%d bytes: %q", len(got), got)
		}
		if len(left) > 0 && len(want)+len("; "+left[0])+beside < conditions.Line-len("; and 12 more") {
			t.Fatalf("there is room for %q in %q", left[0], got)
		}
	})
}
