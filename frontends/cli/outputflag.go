package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// What -o says: JSON and YAML are for programs, and of one schema in all commands (package
// output); the others are for people.
const (
	formatTable = "table"
	formatWide  = "wide" // a table with all of its text, however wide the terminal is
	formatText  = "text"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// outputFlag is -o of a command that prints for people in these forms, the first unless
// told otherwise, and for programs. Of says what of a command has it, if not all.
func outputFlag(of string, forms ...string) cli.Flag {
	if of != "" {
		of = " of " + of
	}
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: forms[0], Usage: "`FORMAT`" + of + ": " + alternatives(forms)}
}

// outputFormat is what outputFlag says.
func outputFormat(c *cli.Context, forms ...string) (string, error) {
	format := c.String("output")
	if !slices.Contains(forms, format) && !forPrograms(format) {
		return "", usagef(c, "--output %q: want %s", format, alternatives(forms))
	}
	return format, nil
}

// forPrograms reports whether a format is one for programs.
func forPrograms(format string) bool { return format == formatJSON || format == formatYAML }

// alternatives are forms and the formats for programs, in words.
func alternatives(forms []string) string {
	return strings.Join(append(slices.Clone(forms), formatJSON), ", ") + " or " + formatYAML
}
