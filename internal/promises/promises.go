// Package promises finds the promises that property tests hold, so that they can see
// that each of them is broken by a mutant: a promise that nothing can break checks
// nothing.
package promises

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Named returns the names with which the tested package and its tests call violated or Violated,
// sorted and unique.
func Named(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	var out []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			if f, is := call.Fun.(*ast.SelectorExpr); !is || f.Sel.Name != "violated" && f.Sel.Name != "Violated" {
				return true
			}
			name, is := call.Args[0].(*ast.BasicLit)
			if !is {
				t.Errorf("%s: the name of a promise is no literal", file)
				return true
			}
			promise, err := strconv.Unquote(name.Value)
			if err != nil {
				t.Error(err)
			}
			out = append(out, promise)
			return true
		})
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Listed compares a list of promises with those in the sources of the tested package.
func Listed(t testing.TB, list []string) {
	t.Helper()
	if diff := cmp.Diff(Named(t), list); diff != "" {
		t.Errorf("(-in the source +listed):\n%s", diff)
	}
}
