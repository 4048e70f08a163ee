package main

import (
	"testing"
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
