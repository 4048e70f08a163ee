package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	oneHost    = "../../docs/one-host.md"
	exitsBegin = "<!-- the exit codes, by go test ./frontends/cli -run TestExitCodes -update -->\n"
	exitsEnd   = "<!-- end of the exit codes -->\n"
	kindsBegin = "<!-- what is printed, by go test ./frontends/cli -run TestTableOfOutputs -update -->\n"
	kindsEnd   = "<!-- end of what is printed -->\n"
)

// Documents and helps have the table of exit codes; and each row of it, for each command that
// it names, is what a script has the program end with. That the program ends with no other
// code is asked after each command of all scripts (TestMain).
func TestExitCodes(t *testing.T) {
	var table strings.Builder
	table.WriteString("| code | of | meaning |\n|---|---|---|\n")
	for _, e := range exitCodes() {
		of := "all"
		if len(e.of) > 0 {
			of = "`" + strings.Join(e.of, "`, `") + "`"
		}
		table.WriteString("| " + e.code + " | " + of + " | " + e.meaning + " |\n")
	}
	documentHas(t, oneHost, exitsBegin, table.String(), exitsEnd)

	tried := triedExits(t)
	app := (&program{getenv: func(string) string { return "" }}).app()
	for _, e := range exitCodes() {
		if !strings.Contains(app.Description, e.meaning) {
			t.Errorf("vmop-cli --help says nothing of %s: %s", e.code, e.meaning)
		}
		for _, of := range append(slices.Clone(e.of), map[bool]string{true: "all"}[len(e.of) == 0]) {
			if of == "" {
				continue
			}
			name, _, _ := strings.Cut(of, " ")
			if c := app.Command(name); of != "all" && (c == nil || !strings.Contains(c.Description, e.meaning)) {
				t.Errorf("vmop-cli %s --help says nothing of %s: %s", name, e.code, e.meaning)
			}
			if !slices.ContainsFunc(tried, func(x triedExit) bool { return x.shows(e, of) }) {
				t.Errorf("no script has vmop-cli %s end with %s: %s", of, e.code, e.meaning)
			}
		}
	}
}

// documentHas compares what stands in a document between two lines, or writes it there.
func documentHas(t *testing.T, file, begin, table, end string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	_, after, ended := strings.Cut(rest, end)
	switch want := before + begin + table + end + after; {
	case !found || !ended:
		t.Errorf("%s has no line %s", file, begin)
	case *update:
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	case want != string(data):
		t.Errorf("%s has another table; run: go test ./frontends/cli -run %s -update", file, t.Name())
	}
}

// triedExit is a line of a script: exec sh -c 'vmop-cli ARGUMENT...; test $? = CODE'
type triedExit struct {
	code int
	args []string
}

// shows reports whether it is a trial of a row, for the command of that it names. What is
// tried of a row of many codes is none that has a row of its own.
func (x triedExit) shows(e exitCode, of string) bool {
	if x.code < e.from || x.code > e.to || of != "all" && !isOf(of, x.args) {
		return false
	}
	return !slices.ContainsFunc(exitCodes(), func(other exitCode) bool {
		return other.to-other.from < e.to-e.from && other.from <= x.code && x.code <= other.to && other.holds(x.args)
	})
}

var triedLine = regexp.MustCompile(`(?m)^exec sh -c 'vmop-cli ([^';]*); test \$\? = (\d+)'(?: &(\w+)&)?$`)

func triedExits(t *testing.T) []triedExit {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out []triedExit
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(data), "\n-- ")
		for _, m := range triedLine.FindAllStringSubmatch(script, -1) {
			code, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			if m[3] != "" && !strings.Contains(script, "\nwait "+m[3]+"\n") {
				t.Errorf("%s: nobody waits for %s", file, m[0])
			}
			out = append(out, triedExit{code, strings.Fields(m[1])})
		}
	}
	return out
}

// What chooses an exit code is a constant that the table has, or the end of something whose
// codes it has: the outcome of a machine, or a command in a guest.
func TestExitCodesAreOfTheTable(t *testing.T) {
	known := map[string]bool{
		"exitError": true, "exitDiffError": true, "exitTakeoverError": true, "exitNoProgram": true, "exitNoByte": true, "exitForced": true,
		"outcome.ExitCode()": true, "failed.ExitCode": true, // runner's: 1 to 4
		"exitSignal + int(status.Signal())": true, "min(exitSignal+status.Signal, exitNoByte)": true,
		"code": true, "exit.ExitCode()": true, // of a command in a guest, of ssh, of --stopped-exit
	}
	used := map[string]bool{}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, is := n.(*ast.CompositeLit)
			if !is {
				return true
			}
			if kind, is := lit.Type.(*ast.Ident); !is || kind.Name != "exitStatus" {
				return true
			}
			for _, element := range lit.Elts {
				field, is := element.(*ast.KeyValueExpr)
				if !is {
					t.Errorf("%s: name the fields of exitStatus", files.Position(lit.Pos()))
					continue
				}
				if key, is := field.Key.(*ast.Ident); !is || key.Name != "code" {
					continue
				}
				var text bytes.Buffer
				if err := printer.Fprint(&text, files, field.Value); err != nil {
					t.Fatal(err)
				}
				used[text.String()] = true
				if !known[text.String()] {
					t.Errorf("%s: %s is a code that nobody has looked for in the table", files.Position(field.Pos()), &text)
				}
			}
			return true
		})
	}
	for text := range known {
		if !used[text] {
			t.Errorf("no exitStatus has the code %s", text)
		}
	}
}
