package main

import (
	"slices"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestNearestIsNearOrTheBeginning(t *testing.T) {
	known := []string{"snapshot", "scp", "ssh", "ssh-config", "console", "console-password", "validate", "start"}
	for word, want := range map[string]string{
		"snap": "snapshot", "snapshto": "snapshot", "valid": "validate", "sstart": "start",
		"consol": "console", // rather than console-password, which begins so too
		"con":    "", "s": "", "sn": "", "destroy": "", "exec": "", "snapshot-delete": "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// Nobody comes to what loses something by typing half of it, or something like it.
func TestNothingDestructiveIsSuggested(t *testing.T) {
	app := (&program{getenv: func(string) string { return "" }}).app()
	for _, c := range app.Commands {
		for i := range len(c.Name) {
			for _, word := range []string{c.Name[:i], c.Name[:i] + c.Name[i+1:], c.Name + "x"} {
				if near := nearest(word, commandNames(app)); destructive[near] {
					t.Errorf("%q: %q is suggested", word, near)
				}
				if near := nearest(word, flagNames(c)); destructiveFlags[near] {
					t.Errorf("%s --%s: --%s is suggested", c.Name, word, near)
				}
			}
		}
	}
}

// A command that takes --cluster, or an action of which does, is not listed among those for
// machines of this host.
func TestCommandsAreWhereTheirFlagsAre(t *testing.T) {
	clustered := func(c *cli.Command) bool {
		return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool {
			v, ok := f.(cli.VisibleFlag)
			return ok && v.IsVisible() && slices.Contains(f.Names(), "cluster")
		})
	}
	for _, c := range (&program{getenv: func(string) string { return "" }}).app().Commands {
		if c.Category == hostCommands && (clustered(c) || slices.ContainsFunc(c.Subcommands, clustered)) {
			t.Errorf("%s is among %q, and takes --cluster", c.Name, c.Category)
		}
	}
}
