package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/output"
)

// wordsOnly are the commands, and the actions of commands, that print nothing for programs
// by the schema unless they are asked to with --cluster, and why.
var wordsOnly = map[string]string{
	"apply":            "does it, and says so; changes has what waits",
	"clone":            "does it, and says so; list has the machine",
	"completion":       "prints a script for a shell",
	"console":          "is a terminal",
	"console-password": "prints one word, the password",
	"convert":          "prints manifests",
	"create":           "does it, and says so; list has the machine, and -o yaml prints a manifest",
	"delete":           "does it, and says so",
	"disable":          "does it, and says so; list has whether it is enabled",
	"disk attach":      "does it on this host, and says so; disk list has the disk",
	"disk create":      "is for a cluster",
	"disk delete":      "is for a cluster",
	"disk describe":    "is for a cluster",
	"disk detach":      "does it on this host, and says so",
	"disk download":    "is for a cluster",
	"disk resize":      "does it on this host, and says so; disk list has the size",
	"disk upload":      "is for a cluster",
	"edit":             "is for an editor; changes has what waits",
	"enable":           "does it, and says so; --print prints a unit",
	"expose":           "does it, and says so; kubectl has the Service",
	"guest exec":       "prints what the command in the guest does",
	"guest ping":       "says by its exit code whether the agent answers",
	"image delete":     "does it, and says so",
	"image prune":      "does it, and says so",
	"image pull":       "does it, and says so; image list has the image",
	"logs":             "prints lines of a log",
	"nmi":              "does it, and says so",
	"pause":            "does it, and says so; list has the phase",
	"rename":           "does it, and says so",
	"render":           "prints manifests, configurations and command lines, with definitions of their own",
	"reset":            "does it, and says so",
	"restart":          "does it on this host, and says so; wait has the machine",
	"resume":           "does it, and says so; list has the phase",
	"run":              "is the machine in the foreground; list has it, and -o yaml prints a manifest",
	"scp":              "is scp",
	"screenshot":       "writes a picture",
	"snapshot create":  "does it, and says so; snapshot list has the snapshot",
	"snapshot delete":  "does it, and says so",
	"snapshot restore": "does it, and says so",
	"ssh":              "is ssh",
	"ssh-config":       "prints lines for ssh's configuration",
	"start":            "does it on this host, and says so; wait has the machine",
	"stop":             "does it on this host, and says so; wait has the machine",
}

// actionsOf are what a command can be asked for by a word, as in disk list; none for most.
func actionsOf(c *cli.Command) []string {
	var out []string
	for _, word := range strings.Fields(c.ArgsUsage) {
		for _, part := range strings.Split(strings.Trim(word, "[],"), "|") {
			if part != "" && part == strings.ToLower(part) && part != "--" && !strings.HasPrefix(part, "-") {
				out = append(out, part)
			}
		}
	}
	return out
}

// Whatever a command prints that a script would read it prints as JSON and YAML, too, by
// the one schema; for what does not there is a reason.
func TestEveryCommandPrintsForPrograms(t *testing.T) {
	for of, action := range map[string]string{"disk": "list", "snapshot": "restore", "image": "pull", "guest": "exec"} {
		if !slices.Contains(actionsOf((&program{}).app().Command(of)), action) {
			t.Errorf("%s %s is not found", of, action)
		}
	}
	printed, withFlag := map[string]bool{}, map[string]bool{}
	for _, o := range outputs() {
		words := strings.Fields(o.call)
		withFlag[words[0]] = true
		if words[len(words)-1] == "--cluster" {
			continue
		}
		printed[words[0]] = true
		if len(words) > 1 {
			for _, action := range strings.Split(words[1], "|") {
				printed[words[0]+" "+action] = true
			}
		}
	}
	used := map[string]bool{}
	for _, c := range (&program{}).app().Commands {
		if c.Hidden {
			continue
		}
		what := []string{c.Name}
		if actions := actionsOf(c); len(actions) > 0 {
			what = nil
			for _, a := range actions {
				what = append(what, c.Name+" "+a)
			}
		}
		for _, w := range what {
			used[w] = true
			switch reason := wordsOnly[w]; {
			case printed[w] && reason != "":
				t.Errorf("%s prints for programs, and is said not to", w)
			case !printed[w] && reason == "":
				t.Errorf("%s prints nothing for programs; say in outputs what it prints, or in wordsOnly why it need not", w)
			}
		}
		format := -1
		for i, f := range c.Flags {
			if s, is := f.(*cli.StringFlag); is && s.Name == "output" {
				format = i
			}
		}
		if !withFlag[c.Name] {
			continue
		}
		if format < 0 {
			t.Errorf("%s has no -o", c.Name)
			continue
		}
		if s, is := c.Flags[format].(*cli.StringFlag); !is || !strings.HasSuffix(s.Usage, ", json or yaml") || !slices.Contains(enumerated(s.Usage), s.Value) {
			t.Errorf("%s: %q: want the flag of outputFlag, whose values the shells complete", c.Name, s.Usage)
		}
	}
	for w := range wordsOnly {
		if !used[w] {
			t.Errorf("there is no %s", w)
		}
	}
}

// The documents have a table of what is printed.
func TestTableOfOutputs(t *testing.T) {
	kinds := map[reflect.Type]output.Kind{}
	for _, k := range output.Kinds() {
		kinds[k.Type] = k
	}
	var table strings.Builder
	table.WriteString("| command | prints | kind | fields |\n|---|---|---|---|\n")
	shown := map[reflect.Type]bool{}
	for _, o := range outputs() {
		typ := reflect.TypeOf(o.of)
		kind, known := kinds[typ]
		if !known {
			t.Fatalf("%s prints %v, which is no kind", o.call, typ)
		}
		fields := "as above"
		if !shown[typ] {
			shown[typ] = true
			fields = fieldsOf(typ, 0)
		}
		name := kind.Kind
		if o.list {
			name = "List of " + name
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", strings.ReplaceAll(o.call, "|", "\\|"), o.about, name, fields)
	}
	for typ, k := range kinds {
		if !shown[typ] {
			t.Errorf("no command prints %s", k.Kind)
		}
	}
	documentHas(t, oneHost, kindsBegin, table.String(), kindsEnd)
}

// fieldsOf are the names in JSON of the fields of a type, and of what these consist of.
func fieldsOf(typ reflect.Type, depth int) string {
	var out []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		of := f.Type
		suffix := ""
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			if of.Kind() == reflect.Slice {
				suffix = "[]"
			}
			of = of.Elem()
		}
		ours := of.Kind() == reflect.Struct && of.PkgPath() == reflect.TypeFor[output.Machine]().PkgPath()
		switch {
		case f.Anonymous && ours:
			out = append(out, fieldsOf(of, depth))
			continue
		case f.Anonymous && of.PkgPath() != "" && of.Name() == "AwaitingChange":
			out = append(out, fieldsOf(of, depth))
			continue
		case f.Anonymous || name == "metadata" && depth == 0:
			continue // what the API has
		}
		text := "`" + name + suffix + "`"
		if ours && depth < 2 {
			text += " (" + fieldsOf(of, depth+1) + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
