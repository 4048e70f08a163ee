package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// reorder moves a command's flags before its other arguments: the flag package stops at the first
// non-flag, and users write "render vm.yaml --show all". What follows --, or is the command for
// ssh, is not moved.
func reorder(app *cli.App, args []string) []string {
	i := 1
	for i < len(args) && strings.HasPrefix(args[i], "-") {
		i++ // the program's own flags have no values
	}
	if i == len(args) {
		return args
	}
	command := app.Command(args[i])
	if command == nil || command.SkipFlagParsing {
		return args
	}
	var flags, rest []string
	head, tail := args[:i+1], args[i+1:]
	for len(tail) > 0 {
		a := tail[0]
		tail = tail[1:]
		if a == "--" {
			rest = append(rest, tail...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			rest = append(rest, a)
			if command.Name == sshName && len(rest) == 2 { // NAME and COMMAND
				rest = append(rest, tail...)
				break
			}
			continue
		}
		if a == "-h" || a == "-help" || a == "--help" {
			return append(slices.Clone(head), a) // other arguments would be topics
		}
		flags = append(flags, a)
		if takesValue(command, a) {
			if len(tail) == 0 {
				return slices.Concat(head, flags) // the flag package reports it
			}
			flags = append(flags, tail[0])
			tail = tail[1:]
		}
	}
	return slices.Concat(head, flags, []string{"--"}, rest)
}

func takesValue(command *cli.Command, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, f := range command.Flags {
		if slices.Contains(f.Names(), name) {
			d, ok := f.(cli.DocGenerationFlag)
			return ok && d.TakesValue()
		}
	}
	return false
}
