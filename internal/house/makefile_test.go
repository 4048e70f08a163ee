package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What make removes is what it has built: machines that make run has made stay.
func TestCleanKeepsMachines(t *testing.T) {
	cmd := exec.Command("make", "-n", "clean")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(out)) {
		if word = strings.TrimRight(word, "/"); word == ".cache" || strings.HasSuffix(word, "/.cache") || strings.Contains(word, "machines") {
			t.Errorf("make clean removes %s", word)
		}
	}
}

// What make test leaves to make test-slow has a name by which it is left out, so that
// nobody waits for a Debian by a new test. The others there are named by themselves.
func TestWhatBootsADebianIsNamedSo(t *testing.T) {
	var files []string
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range files {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Ensure" {
					if x, ok := sel.X.(*ast.Ident); ok && x.Name == "debianguest" {
						found++
						if !strings.Contains(f.Name.Name, "DebianGuest") {
							t.Errorf("%s: %s boots a Debian: have DebianGuest in its name, and make test-slow runs it", fset.Position(f.Pos()), f.Name.Name)
						}
					}
				}
				return true
			})
		}
	}
	if found < 4 {
		t.Errorf("only %d tests with a Debian were found", found)
	}
}
