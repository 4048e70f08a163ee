package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// The promises hold in more worlds than make test draws because make long and the rounds
// of CI draw them: what has a promise is in their lists, and a world of promises has a
// test that is called so.
func TestMakeHoldsEveryPromise(t *testing.T) {
	promised := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && e.Name() != "..":
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "TestPromises") {
				promised[filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../../"))] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(promised) < 6 {
		t.Errorf("only %d packages with promises were found", len(promised))
	}
	for _, p := range load(t, "./vmop/...") {
		if slices.Contains(p.Imports, module+"internal/promises") && !promised[p.name()] {
			t.Errorf("%s is a world of promises, and none of its tests has TestPromises in front of its name: make long leaves it out", p.name())
		}
	}
	for _, targets := range [][]string{{"long"}, {"test-promises"}, {"test-promised", "test-race"}} {
		tested := testedBy(t, targets...)
		for name := range promised {
			if !tested[name] {
				t.Errorf("make %s leaves the promises of %s out (git has to know of its files)", strings.Join(targets, " "), name)
			}
		}
	}
}

// testedBy are the packages that targets of the Makefile give to go test: the go command
// is replaced by one that lists, and tells what it would test.
func testedBy(t *testing.T, targets ...string) map[string]bool {
	t.Helper()
	fake := filepath.Join(t.TempDir(), "go")
	script := "#!/bin/sh\nif [ \"$1\" = list ]; then exec go \"$@\"; fi\nprintf 'argument %s\\n' \"$@\"\n"
	if err := os.WriteFile(fake, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("make", append([]string{"-s", "GO=" + fake}, targets...)...)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %v: %v\n%s", targets, err, out)
	}
	tested := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "argument "+module); is {
			tested[name] = true
		}
	}
	return tested
}
