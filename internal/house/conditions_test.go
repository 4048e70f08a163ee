package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// People and their tools match on the types and reasons of conditions: they are written once,
// in package conditions, and other packages have names for them at most.
func TestConditionsAreWrittenOnce(t *testing.T) {
	files := token.NewFileSet()
	values := map[string]bool{}
	aliases := 0
	constants := func(path string, each func(name string, value ast.Expr)) {
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, is := d.(*ast.GenDecl)
			if !is || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				spec, is := s.(*ast.ValueSpec)
				if !is {
					continue
				}
				for i, v := range spec.Values {
					each(spec.Names[i].Name, v)
				}
			}
		}
	}
	const own = "../../vmop/conditions/conditions.go"
	constants(own, func(name string, value ast.Expr) {
		lit, is := value.(*ast.BasicLit)
		if !is {
			return
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		values[text] = true
	})
	if len(values) < 50 {
		t.Fatalf("%s has only %d types and reasons", own, len(values))
	}
	for _, dir := range []string{"../../vmop", "../../frontends"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(filepath.ToSlash(path), "/conditions/") {
				return err
			}
			constants(path, func(name string, value ast.Expr) {
				if s, is := value.(*ast.SelectorExpr); is {
					if x, is := s.X.(*ast.Ident); is && x.Name == "conditions" {
						aliases++
					}
					return
				}
				lit, is := value.(*ast.BasicLit)
				if !is || !slices.ContainsFunc([]string{"Condition", "Reason", "reason"}, func(p string) bool { return strings.HasPrefix(name, p) }) {
					return
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && values[text] {
					t.Errorf("%s: %s = %s: package conditions has it", files.Position(lit.Pos()), name, lit.Value)
				}
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if aliases < 50 {
		t.Errorf("only %d names of them were found", aliases)
	}
}
