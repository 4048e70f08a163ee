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

// unusedDeclarations are likewise the types, variables and constants of the library that
// nothing of this module needs outside of their packages.
var unusedDeclarations = map[string]string{
	"vmop/live.ReasonNotStarted":      "a value of a condition's reason, which are told apart by who reads a status",
	"vmop/live.ReasonNotSupported":    "likewise",
	"vmop/live.ReasonPodNotResized":   "likewise",
	"vmop/live.ReasonRunnerStarted":   "likewise",
	"vmop/live.ReasonWaitingForTray":  "likewise",
	"vmop/host.CauseRunnerDied":       "likewise, of the cause of an end",
	"vmop/qga.ClassCommandNotFound":   "likewise, of the class of an agent's error",
	"vmop/spec.PhaseMigrating":        "likewise, of a phase, which Deckhouse's machines have",
	"vmop/qemucmd.TemplateData":       "what a template of a machine is executed with, by the names of its fields",
	"vmop/host.DefaultNamespace":      "what an option is where it is left out, and a limit that is documented",
	"vmop/qga.MaxAnswer":              "likewise",
	"vmop/qmp.DefaultMaxMessage":      "likewise",
	"vmop/vmopagent.DefaultAttempts":  "likewise",
	"vmop/names.GroupPrefix":          "what begins the annotations of a group, for those that have their own",
	"vmop/reconcile/console.MIMEType": "what a server says of a viewer file, by which browsers open it",
}

// TestExportedDeclarationsAreUsed: of types, variables and constants the same holds as of
// functions. A type is needed, too, that something exported is made of; an enumeration is
// exported with all its values, and errors that callers can tell apart with all of them.
func TestExportedDeclarationsAreUsed(t *testing.T) {
	typed := mustTyped(t)
	uses, tests, mentioned := map[types.Object]bool{}, selectedByTests(t, typed), map[types.Object]bool{}
	for _, p := range typed {
		for _, o := range p.info.Uses {
			if o.Pkg() != p.scope {
				uses[o] = true
			}
		}
		for _, o := range exportedObjects(p) {
			mentions(o, mentioned)
		}
	}
	looked, known := 0, map[string]bool{}
	for _, p := range typed {
		if p.name != "vmop" && !strings.HasPrefix(p.name, "vmop/") || strings.Contains(p.name, "/internal") {
			continue
		}
		for _, o := range exportedObjects(p) {
			name, used := p.name+"."+o.Name(), uses[o] || tests.by(p.name, o.Name())
			switch o := o.(type) {
			case *types.Func:
				continue
			case *types.TypeName:
				used = used || mentioned[o] || isError(o)
			case *types.Const:
				_, enumerated := o.Type().(*types.Named)
				used = used || enumerated
			case *types.Var:
				used = used || strings.HasPrefix(o.Name(), "Err")
			}
			looked++
			known[name] = true
			switch {
			case !used && unusedDeclarations[name] == "":
				t.Errorf("%s is used by its package only: unexport it, or say in unusedDeclarations whom it is for", name)
			case used && unusedDeclarations[name] != "":
				t.Errorf("%s is used by now: take it from unusedDeclarations", name)
			}
		}
	}
	if looked < 1000 {
		t.Errorf("looked at %d declarations only", looked)
	}
	for name := range unusedDeclarations {
		if !known[name] {
			t.Errorf("there is no %s, which unusedDeclarations names", name)
		}
	}
}

// isError reports whether a type is one of errors, which callers tell apart.
func isError(o *types.TypeName) bool {
	of := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	return types.Implements(o.Type(), of) || types.Implements(types.NewPointer(o.Type()), of)
}

// exportedObjects are what a package declares and exports, methods and fields aside.
func exportedObjects(p typedPackage) []types.Object {
	var out []types.Object
	for _, name := range p.scope.Scope().Names() {
		if o := p.scope.Scope().Lookup(name); o.Exported() && !strings.HasPrefix(fileOf(o), "zz_generated") {
			out = append(out, o)
		}
	}
	return out
}

// mentions adds the types that whoever uses an object has to do with: of parameters and
// results, of fields and elements.
func mentions(o types.Object, to map[types.Object]bool) {
	var walk func(types.Type)
	walk = func(t types.Type) {
		switch t := t.(type) {
		case *types.Alias:
			to[t.Obj()] = true
			walk(types.Unalias(t))
		case *types.Named:
			to[t.Obj()] = true
			for a := range t.TypeArgs().Types() {
				walk(a)
			}
		case *types.Pointer:
			walk(t.Elem())
		case *types.Slice:
			walk(t.Elem())
		case *types.Array:
			walk(t.Elem())
		case *types.Chan:
			walk(t.Elem())
		case *types.Map:
			walk(t.Key())
			walk(t.Elem())
		case *types.Signature:
			for v := range t.Params().Variables() {
				walk(v.Type())
			}
			for v := range t.Results().Variables() {
				walk(v.Type())
			}
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					walk(f.Type())
				}
			}
		case *types.Interface:
			for m := range t.Methods() {
				walk(m.Signature())
			}
		}
	}
	if _, is := o.(*types.TypeName); !is {
		walk(o.Type())
		return
	}
	walk(o.Type().Underlying())
	if named, is := o.Type().(*types.Named); is {
		for m := range named.Methods() {
			if m.Exported() {
				walk(m.Signature())
			}
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
