package textout

import (
	"fmt"
	"strings"
	"unicode"
)

// Printable escapes what could steer a terminal. Line feeds and tabs stay:
// it is for texts of several lines.
func Printable(s string) string {
	return escape(s, func(r rune) bool { return r == '\n' || r == '\t' })
}

// Cell is Printable for something that has to stay on its line.
func Cell(s string) string {
	return escape(s, func(rune) bool { return false })
}

// OneLine has several lines as one.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "; ")
}

func escape(s string, keep func(rune) bool) string {
	bad := func(r rune) bool { return !keep(r) && !unicode.IsPrint(r) }
	if !strings.ContainsFunc(s, bad) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if bad(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
