package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// exampleLine is a command line in a help or in a document.
var exampleLine = regexp.MustCompile("(?m)^(?:\\$ |  )?(vmop-cli [^\n]*)$|`(vmop-cli [a-z][^`\n]*)`")

// shownVersion is what vmop-cli version says behind the name: a tag, or where a clone has
// none a commit.
var shownVersion = regexp.MustCompile(`^(v[0-9]+\.|[0-9a-f]{7,40}(-dirty)?$)`)

// The command lines in helps, README and docs have commands and flags that there are:
// nobody is told to type something that is refused.
func TestExamplesAreCommandLines(t *testing.T) {
	app := (&program{getenv: func(string) string { return "" }}).app()
	texts := map[string]string{"vmop-cli --help": app.Description}
	for _, c := range app.Commands {
		texts["vmop-cli "+c.Name+" --help"] = c.Description
	}
	for _, pattern := range []string{"../../README.md", "../../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(data)
		}
	}
	found := 0
	for where, text := range texts {
		if before, _, mistakes := strings.Cut(text, "\n## Mistakes\n"); mistakes { // of the session
			text = before
		}
		for _, m := range exampleLine.FindAllStringSubmatch(text, -1) {
			line := m[1] + m[2]
			found++
			if problem := problemOf(app, line); problem != "" {
				t.Errorf("%s: %s: %s", where, line, problem)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d command lines were found", found)
	}
	for _, wrong := range []string{"vmop-cli strat web", "vmop-cli start web --disk-size 1Gi", "vmop-cli list -x"} {
		if problemOf(app, wrong) == "" {
			t.Errorf("nothing is wrong with %s", wrong)
		}
	}
}

// problemOf says what is wrong with a command line: a command or a flag that there is not.
func problemOf(app *cli.App, line string) string {
	for _, end := range []string{" | ", " > ", " >", " && ", "; ", "  #", " # ", " (", " \\"} {
		line, _, _ = strings.Cut(line, end)
	}
	words := strings.Fields(line)[1:]
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || words[0] == "version" || shownVersion.MatchString(words[0]) {
		return ""
	}
	i := slices.IndexFunc(app.Commands, func(c *cli.Command) bool { return slices.Contains(c.Names(), words[0]) })
	if i < 0 {
		return "there is no such command"
	}
	var names []string
	for _, f := range app.Commands[i].Flags {
		names = append(names, f.Names()...)
	}
	for _, word := range words[1:] {
		if word == "--" {
			break // what follows is another program's
		}
		name, _, _ := strings.Cut(strings.TrimLeft(strings.Trim(word, "[]"), "-"), "=")
		if strings.HasPrefix(strings.Trim(word, "["), "-") && name != "" && name != "help" && name != "h" && !slices.Contains(names, name) {
			return "there is no flag " + word
		}
	}
	return ""
}
