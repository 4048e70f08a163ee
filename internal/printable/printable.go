// Package printable escapes what could steer a terminal.
package printable

import (
	"fmt"
	"strings"
	"unicode"
)

// Escape writes unprintable characters as \uXXXX, except those for which keep returns true.
func Escape(s string, keep func(rune) bool) string {
	bad := func(r rune) bool { return !unicode.IsPrint(r) && !keep(r) }
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

// Cell is [Escape] that keeps none.
func Cell(s string) string { return Escape(s, func(rune) bool { return false }) }
