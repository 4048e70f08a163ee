package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// helpTexts are the fields of commands and flags that show commands without knowing what
// somebody has given.
var helpTexts = []string{"Description", "Usage", "UsageText", "ArgsUsage"}

// Each command line that a message tells comes from hint, which repeats the flags that were
// given, and is one that this program understands.
func TestHints(t *testing.T) {
	commands := map[string]*cli.Command{}
	for _, c := range (&program{getenv: func(string) string { return "" }}).app().Commands {
		commands[c.Name] = c
	}
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	told := regexp.MustCompile(`vmop-cli( --?[a-z]+)* [a-z]`)
	hints := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(helpTexts, key.Name) {
					return false
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && told.MatchString(text) {
					t.Errorf("%s: %s: have hint make the command line", files.Position(n.Pos()), n.Value)
				}
			case *ast.CallExpr:
				s, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "hint" || len(n.Args) < 2 {
					break
				}
				hints++
				first := n.Args[1] // after the context; nextSteps have that
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "next" {
					first = n.Args[0]
				}
				verb, ok := first.(*ast.BasicLit)
				if !ok {
					break // a verb that the caller knows
				}
				name, err := strconv.Unquote(verb.Value)
				command := commands[name]
				if err != nil || command == nil {
					t.Errorf("%s: there is no command %s", files.Position(n.Pos()), verb.Value)
				} else if !slices.Contains(flagNames(command), "data-dir") {
					t.Errorf("%s: %s does not know --data-dir", files.Position(n.Pos()), name)
				}
			}
			return true
		})
	}
	if hints < 20 {
		t.Errorf("found %d hints", hints)
	}
}

// What says where the machines are goes along, as a shell takes it.
func TestHintsRepeatFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  string
		want string
	}{
		{nil, "", "vmop-cli start web"},
		{[]string{"--data-dir", "/srv/my machines"}, "", "vmop-cli start web --data-dir '/srv/my machines'"},
		{[]string{"--data-dir", "/srv/a"}, "/srv/a", "vmop-cli start web"},
		{[]string{"--cluster"}, "", "vmop-cli start web --cluster"},
		{[]string{"--context", "lab", "--kubeconfig", "k"}, "", "vmop-cli start web --kubeconfig k --context lab"},
		{[]string{"--kubeconfig", "my k"}, "", "vmop-cli start web --kubeconfig 'my k'"},
	} {
		p := &program{getenv: func(name string) string { return map[string]string{"VMOP_DATA_DIR": c.env}[name] }}
		got := ""
		app := &cli.App{Commands: []*cli.Command{{
			Name: "probe", Flags: eitherFlags(dataDirFlag()),
			Action: func(c *cli.Context) error {
				got = p.hint(c, "start", "web")
				return nil
			},
		}}}
		if err := app.Run(append([]string{"vmop-cli", "probe"}, c.args...)); err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.args, got, err, c.want)
		}
	}
}

// What people name as they like is quoted, in commands of this program and of kubectl.
func TestHintsAreQuoted(t *testing.T) {
	var hint, kubectl string
	app := &cli.App{Commands: []*cli.Command{{
		Name: "probe", Flags: clusterFlags(),
		Action: func(c *cli.Context) error {
			p := &program{getenv: func(string) string { return "" }}
			hint, kubectl = p.hint(c, "apply", "/tmp/ann's web.yaml"), p.kubectl(c, "get", "vm")
			return nil
		},
	}}}
	if err := app.Run([]string{"vmop-cli", "probe", "--kubeconfig", "my clusters", "--context", "lab"}); err != nil {
		t.Fatal(err)
	}
	if want := `vmop-cli apply '/tmp/ann'\''s web.yaml' --kubeconfig 'my clusters' --context lab`; hint != want {
		t.Errorf("%s, want %s", hint, want)
	}
	if want := `kubectl --kubeconfig 'my clusters' --context lab get vm`; kubectl != want {
		t.Errorf("%s, want %s", kubectl, want)
	}
}
