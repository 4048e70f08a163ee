package textout

import (
	"strings"

	"github.com/vmop/sdk/internal/printable"
)

// Printable escapes terminal control characters. Line feeds and tabs stay: it is for multi-line
// texts.
func Printable(s string) string {
	return printable.Escape(s, func(r rune) bool { return r == '\n' || r == '\t' })
}

// Cell is Printable for a text that has to stay on its line.
func Cell(s string) string {
	return printable.Cell(s)
}

// OneLine joins several lines to one.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "; ")
}
