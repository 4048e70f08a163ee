package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// The values of -o: JSON and YAML are for programs, and have the same schema in all commands
// (package output); the others are for people.
const (
	formatTable = "table"
	formatWide  = "wide" // a table with all of its text, however wide the terminal is
	formatText  = "text"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// outputFlag is -o of a command that prints in these forms, the first by default, and in those for
// programs. of restricts it to a part of the command.
func outputFlag(of string, forms ...string) cli.Flag {
	if of != "" {
		of = " of " + of
	}
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: forms[0], Usage: "`FORMAT`" + of + ": " + alternatives(forms)}
}

func outputFormat(c *cli.Context, forms ...string) (string, error) {
	format := c.String("output")
	if !slices.Contains(forms, format) && !forPrograms(format) {
		return "", usagef(c, "--output %q: want %s", format, alternatives(forms))
	}
	return format, nil
}

func forPrograms(format string) bool { return format == formatJSON || format == formatYAML }

func alternatives(forms []string) string {
	return strings.Join(append(slices.Clone(forms), formatJSON), ", ") + " or " + formatYAML
}
