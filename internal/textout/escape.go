package textout

import (
	"strings"

	"github.com/vmop/sdk/internal/printable"
)

// Printable escapes what could steer a terminal. Line feeds and tabs stay:
// it is for texts of several lines.
func Printable(s string) string {
	return printable.Escape(s, func(r rune) bool { return r == '\n' || r == '\t' })
}

// Cell is Printable for something that has to stay on its line.
func Cell(s string) string {
	return printable.Cell(s)
}

// OneLine has several lines as one.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "; ")
}
