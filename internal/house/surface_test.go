package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unusedHere are the exported functions and methods of the library that nothing of this
// module uses outside of their packages, with the reason why they are exported.
var unusedHere = map[string]string{
	"vmop/host.Host.ImagesDir":    "where programs with machines of their own put images",
	"vmop/host.Host.TemplatesDir": "likewise, machine types",
	"vmop/host.Host.Prunable":     "what PruneImages would remove, to ask before",

	"vmop/reconcile/attachment/attachmenttest.Promises": "what TestDecide holds a decision to, for its reports",
	"vmop/reconcile/disk/disktest.Promises":             "likewise",
	"vmop/reconcile/machine/machinetest.Promises":       "likewise",
	"vmop/reconcile/operation/operationtest.Promises":   "likewise",
	"vmop/reconcile/pool/pooltest.Promises":             "likewise",

	"vmop/spec/spectest.ImageName":   "parts of machines, for properties of programs about them",
	"vmop/spec/spectest.MachineName": "likewise",
	"vmop/spec/spectest.RawObject":   "likewise",
}

// calledByOthers are methods that encoders, printers and the like call by an interface.
var calledByOthers = []string{"Error", "GoString", "Is", "MarshalJSON", "MarshalText", "MarshalYAML", "String", "Unwrap"}

// TestExportedFunctionsAreUsed: what the library exports is what its importers use. Those
// of this module stand for them: the programs, other packages of the library, examples, and
// tests that see a package as its importers do.
func TestExportedFunctionsAreUsed(t *testing.T) {
	typed := mustTyped(t)
	uses, interfaces := usesOfOthers(typed), methodsOfInterfaces(typed)
	tests := selectedByTests(t, typed)
	found := map[string]bool{}
	for _, p := range typed {
		if p.name != "vmop" && !strings.HasPrefix(p.name, "vmop/") || strings.Contains(p.name, "/internal") {
			continue
		}
		for name, f := range exportedFunctions(p) {
			found[name] = true
			method := f.Signature().Recv() != nil
			switch used := uses[f] || tests.by(p.name, f.Name()) || method && (interfaces[f.Name()] || slices.Contains(calledByOthers, f.Name())); {
			case !used && unusedHere[name] == "":
				t.Errorf("%s is used by its package only: unexport it, or say in unusedHere whom it is for", name)
			case used && unusedHere[name] != "":
				t.Errorf("%s is used by now: take it from unusedHere", name)
			}
		}
	}
	if len(found) < 1000 {
		t.Errorf("looked at %d functions only", len(found))
	}
	for name := range unusedHere {
		if !found[name] {
			t.Errorf("there is no %s, which unusedHere names", name)
		}
	}
}

// exportedFunctions are the functions and methods that a package exports, by its name and
// theirs; what is generated is left out.
func exportedFunctions(p typedPackage) map[string]*types.Func {
	out := map[string]*types.Func{}
	add := func(name string, f *types.Func) {
		if f.Exported() && !strings.HasPrefix(fileOf(f), "zz_generated") {
			out[p.name+"."+name] = f
		}
	}
	for _, name := range p.scope.Scope().Names() {
		switch o := p.scope.Scope().Lookup(name).(type) {
		case *types.Func:
			add(name, o)
		case *types.TypeName:
			named, is := o.Type().(*types.Named)
			if !is || !o.Exported() {
				continue
			}
			for m := range named.Methods() {
				add(name+"."+m.Name(), m)
			}
		}
	}
	return out
}

// usesOfOthers are the functions that another package than their own uses.
func usesOfOthers(typed []typedPackage) map[*types.Func]bool {
	out := map[*types.Func]bool{}
	for _, p := range typed {
		for _, o := range p.info.Uses {
			if f, is := o.(*types.Func); is && f.Pkg() != p.scope {
				out[f.Origin()] = true
			}
		}
	}
	return out
}

// methodsOfInterfaces are the names of the methods that interfaces of this module have.
func methodsOfInterfaces(typed []typedPackage) map[string]bool {
	out := map[string]bool{}
	for _, p := range typed {
		for _, name := range p.scope.Scope().Names() {
			o, is := p.scope.Scope().Lookup(name).(*types.TypeName)
			if !is {
				continue
			}
			if i, is := o.Type().Underlying().(*types.Interface); is {
				for m := range i.Methods() {
					out[m.Name()] = true
				}
			}
		}
	}
	return out
}

// selections are the names that tests select of something, by the package of the tests;
// that of tests which see their package from outside has another name.
type selections map[string][]string

func (s selections) by(pkg, name string) bool {
	return slices.ContainsFunc(s[name], func(of string) bool { return of != pkg })
}

func selectedByTests(t *testing.T, typed []typedPackage) selections {
	out := selections{}
	for _, p := range typed {
		files, err := filepath.Glob(filepath.Join(p.dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			from := p.name
			if strings.HasSuffix(f.Name.Name, "_test") {
				from += "_test"
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, is := n.(*ast.SelectorExpr); is && !slices.Contains(out[s.Sel.Name], from) {
					out[s.Sel.Name] = append(out[s.Sel.Name], from)
				}
				return true
			})
		}
	}
	return out
}
