// Package printable escapes what could steer a terminal.
package printable

import (
	"fmt"
	"strings"
	"unicode"
)

// Escape writes characters that cannot be printed as \uXXXX, but for those that keep lets stand.
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

// Cell is [Escape] that lets nothing stand.
func Cell(s string) string { return Escape(s, func(rune) bool { return false }) }
