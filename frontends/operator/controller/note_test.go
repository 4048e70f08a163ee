package controller

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShortenedNote(t *testing.T) {
	for _, note := range []string{"short", strings.Repeat("x", 2000), strings.Repeat("ü", 2000), "x" + strings.Repeat("ü", 2000)} {
		got := shortened(note)
		if len(got) > maxNote || !utf8.ValidString(got) || len(note) <= maxNote && got != note {
			t.Errorf("note of %d bytes became one of %d bytes, valid UTF-8: %v", len(note), len(got), utf8.ValidString(got))
		}
	}
}
