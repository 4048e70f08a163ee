package machine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/machine"
)

// TestMutants shows that the promises would be noticed to be broken.
func TestMutants(t *testing.T) {
	for name, k := range worldKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if v, found := k.broken(machine.Decide, 20); found {
				t.Fatalf("without a fault: %v", v)
			}
			for _, m := range k.mutants {
				t.Run(m.fault, func(t *testing.T) {
					t.Parallel()
					v, found := k.broken(m.decide, k.worlds)
					if !found {
						t.Fatalf("nobody notices; want %q", m.promise)
					}
					if v.name != m.promise && v.name != m.or {
						t.Errorf("it is noticed as %v; want %q", v, m.promise)
					}
				})
			}
		})
	}
}

// TestEveryPromiseHasAMutant finds the promises in the source of the worlds: one that
// no fault breaks may be one that nothing looks at, and a mutant's promise must be one.
func TestEveryPromiseHasAMutant(t *testing.T) {
	made := promises(t)
	broken := map[string]bool{}
	for _, k := range worldKinds() {
		for _, m := range k.mutants {
			broken[m.promise] = true
			for _, p := range []string{m.promise, m.or} {
				if p != "" && !slices.Contains(made, p) {
					t.Errorf("%q breaks %q, which nobody has promised", m.fault, p)
				}
			}
		}
	}
	for _, p := range made {
		if !broken[p] {
			t.Errorf("no mutant breaks %q", p)
		}
	}
}

// promises are the names with which the worlds call violated.
func promises(t *testing.T) []string {
	files, err := filepath.Glob("*_test.go")
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
			if f, is := call.Fun.(*ast.SelectorExpr); !is || f.Sel.Name != "violated" {
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
