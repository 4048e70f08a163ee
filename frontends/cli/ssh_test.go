package main

import (
	"slices"
	"strings"
	"testing"
)

// ssh joins its words by blanks and has a shell read them: those that somebody has given are
// quoted, but for a single one, which is a line for that shell.
func TestRemoteCommand(t *testing.T) {
	for _, c := range []struct{ words, want []string }{
		{nil, nil},
		{[]string{"cd /etc && ls *.conf"}, []string{"cd /etc && ls *.conf"}},
		{[]string{"uname", "-a"}, []string{"uname -a"}},
		{[]string{"sh", "-c", "exit 42"}, []string{"sh -c 'exit 42'"}},
		{[]string{"ls", "*", ""}, []string{"ls '*' ''"}},
	} {
		if got := remoteCommand(c.words); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}

// What stands behind the guest's command is that command's.
func TestArgumentsOfSSH(t *testing.T) {
	app := (&program{getenv: func(string) string { return "" }}).app()
	for line, want := range map[string]string{
		"ssh web":                     "ssh -- web",
		"ssh web -l root":             "ssh -l root -- web",
		"ssh web --user root ls -l /": "ssh --user root -- web ls -l /",
		"ssh -l root web ls -l -h":    "ssh -l root -- web ls -l -h",
		"ssh web -- ls -l":            "ssh -- web ls -l",
		"ssh web sh -c x -- y":        "ssh -- web sh -c x -- y",
		"scp web a b -r":              "scp -r -- web a b",
	} {
		got := reorder(app, append([]string{"vmop-cli"}, strings.Fields(line)...))
		if strings.Join(got[1:], " ") != want {
			t.Errorf("%s: %q, want %s", line, got[1:], want)
		}
	}
}
