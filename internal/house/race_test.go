package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// raced is what the Makefile gives to the race detector, in make test and beside it, by
// regular expressions of import paths.
func raced(t *testing.T) *regexp.Regexp {
	t.Helper()
	data, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var lists []string
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\\\n", "")) {
		name, list, ok := strings.Cut(strings.TrimSpace(line), " := ")
		if ok && (name == "RACE" || name == "RACE_REST") {
			// grep -E gets it as make has it, with single dollars.
			lists = append(lists, strings.ReplaceAll(list, "$$", "$"))
		}
	}
	if len(lists) != 2 {
		t.Fatalf("the Makefile has %d of RACE and RACE_REST", len(lists))
	}
	return regexp.MustCompile(strings.Join(lists, "|"))
}

// startsGoroutine reports whether a node has something run beside: a go statement, Go of a
// sync.WaitGroup or an errgroup.Group, AfterFunc of time or context. A bare function there is
// the cancel of another context, which shares nothing of the package's.
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if sel.Sel.Name == "AfterFunc" && len(n.Args) == 2 {
			_, bare := n.Args[1].(*ast.Ident)
			return !bare
		}
		return sel.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}

// Where goroutines meet, the tests are run under the race detector: what has them and is not
// listed would be tested without, and nobody would see it.
func TestPackagesWithGoroutinesAreTestedForRaces(t *testing.T) {
	listed := raced(t)
	found := 0
	for _, p := range load(t, "./...") {
		if tests, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go")); err != nil || len(tests) == 0 {
			continue
		}
		where := ""
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if where == "" && startsGoroutine(n) {
					at := fset.Position(n.Pos())
					at.Filename = name
					where = at.String()
				}
				return where == ""
			})
		}
		if where == "" {
			continue
		}
		found++
		if !listed.MatchString(p.ImportPath) {
			t.Errorf("%s has a goroutine (%s) and is not tested under the race detector: add it to RACE in the Makefile, or to RACE_REST if it takes minutes", p.name(), where)
		}
	}
	if found < 15 {
		t.Errorf("only %d packages with goroutines were found", found)
	}
}
