package house

import (
	"cmp"
	"fmt"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// version is what packages of Kubernetes are called, one as the other.
var version = regexp.MustCompile(`^v[0-9]`)

// TestExportedSurface holds what each package of the library exports to a list: whoever
// changes the surface changes a list, too, and sees so. What a change breaks is told by
// make apidiff.
func TestExportedSurface(t *testing.T) {
	const how = "go test ./internal/house -run TestExportedSurface -update"
	dir := filepath.Join("testdata", "exported")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	unseen := map[string]bool{}
	for _, e := range entries {
		unseen[e.Name()] = true
	}
	packages := 0
	for _, p := range mustTyped(t) {
		if p.name != "vmop" && !strings.HasPrefix(p.name, "vmop/") || strings.Contains(p.name+"/", "/internal/") {
			continue
		}
		packages++
		name := strings.ReplaceAll(p.name, "/", "-") + ".txt"
		file, now := filepath.Join(dir, name), exported(p.scope)
		if *update {
			if err := os.WriteFile(file, []byte(strings.Join(now, "")), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		delete(unseen, name)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%s has no list of what it exports; run: %s", p.name, how)
			continue
		}
		old := slices.Collect(strings.Lines(string(text)))
		for _, line := range old {
			if !slices.Contains(now, line) {
				t.Errorf("%s no longer exports: %s", p.name, strings.TrimSpace(line))
			}
		}
		for _, line := range now {
			if !slices.Contains(old, line) {
				t.Errorf("%s exports anew: %s", p.name, strings.TrimSpace(line))
			}
		}
		if !slices.Equal(old, now) {
			t.Errorf("%s is old; where all of that is meant, run: %s", file, how)
		}
	}
	for name := range unseen {
		t.Errorf("%s is of no package; run: %s", filepath.Join(dir, name), how)
	}
	if packages < 40 {
		t.Errorf("looked at %d packages only", packages)
	}
}

// exported has a line for each constant, variable, function, type, field and method that
// a package exports; what is generated is left out. Types are written with the names of
// their packages, and have their members below them.
func exported(p *types.Package) []string {
	type line struct{ name, text string }
	var lines []line
	short := func(other *types.Package) string {
		if other == p {
			return ""
		}
		if name := other.Name(); !version.MatchString(name) {
			return name
		}
		return path.Base(path.Dir(other.Path())) + other.Name() // as corev1
	}
	typ := func(t types.Type) string { return types.TypeString(t, short) }
	add := func(name, format string, args ...any) {
		lines = append(lines, line{name, fmt.Sprintf(format, args...) + "\n"})
	}
	function := func(of string, f *types.Func) {
		if !f.Exported() || strings.HasPrefix(fileOf(f), "zz_generated") {
			return
		}
		declared := f.Name()
		if recv := f.Signature().Recv(); recv != nil {
			declared = "(" + typ(recv.Type()) + ")." + declared
		}
		add(of+f.Name(), "func %s%s", declared, strings.TrimPrefix(typ(f.Signature()), "func"))
	}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			add(name, "const %s %s = %s", name, typ(o.Type()), o.Val().ExactString())
		case *types.Var:
			add(name, "var %s %s", name, typ(o.Type()))
		case *types.Func:
			function("", o)
		case *types.TypeName:
			if o.IsAlias() {
				add(name, "type %s = %s", name, typ(types.Unalias(o.Type())))
				continue
			}
			named := o.Type().(*types.Named)
			for m := range named.Methods() {
				function(name+".", m)
			}
			declared := name + strings.TrimPrefix(typ(named), name) // with its type parameters
			switch u := named.Underlying().(type) {
			case *types.Struct:
				add(name, "type %s struct", declared)
				for f := range u.Fields() {
					if !f.Exported() {
						continue
					}
					kind := "field"
					if f.Embedded() {
						kind = "embedded"
					}
					add(name+"."+f.Name(), "%s %s.%s %s", kind, name, f.Name(), typ(f.Type()))
				}
			case *types.Interface:
				add(name, "type %s interface", declared)
				for m := range u.Methods() {
					add(name+"."+m.Name(), "method %s.%s%s", name, m.Name(), strings.TrimPrefix(typ(m.Signature()), "func"))
				}
			default:
				add(name, "type %s %s", declared, typ(u))
			}
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.text, b.text)) })
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, l.text)
	}
	return out
}
