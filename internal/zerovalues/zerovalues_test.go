package zerovalues

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const module = "github.com/vmop/sdk/"

// TestNilAndZeroValuesArePassed calls what the packages below vmop export, as the
// source has it at this moment: what is added is called without a word here. The calls
// are made by a program of its own, which has no commands to run, no home and an empty
// directory.
func TestNilAndZeroValuesArePassed(t *testing.T) {
	packages := exported(t, "../../vmop")
	if len(packages) < 30 {
		t.Fatalf("only %d packages are found", len(packages))
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "calls")
	table := filepath.Join(dir, "table.go")
	if err := os.WriteFile(table, source(packages), 0o600); err != nil {
		t.Fatal(err)
	}
	place, err := filepath.Abs("calls/table.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {place: table}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./calls").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := exec.CommandContext(t.Context(), program)
	c.Dir, c.Env = home, []string{"HOME=" + home, "TMPDIR=" + home, "XDG_RUNTIME_DIR=" + home, "PATH=" + home}
	c.Stdout, c.Stderr = &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // process 0 is its own group
	c.WaitDelay = 10 * time.Second
	if err := c.Run(); err != nil {
		t.Fatalf("%v:\n%s", err, out.Bytes())
	}
	t.Logf("%s", out.Bytes())
}

// apackage is what a package exports.
type apackage struct {
	path, name string
	functions  []string
	types      []string
}

// exported are the packages below a directory that programs import.
func exported(t *testing.T, root string) []apackage {
	t.Helper()
	var out []apackage
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch d.Name() {
		case "internal", "testdata":
			return filepath.SkipDir
		}
		if strings.HasSuffix(d.Name(), "test") {
			return filepath.SkipDir // for tests, which may panic
		}
		p, err := look(path)
		if err != nil || p.name == "" {
			return err
		}
		rel, err := filepath.Rel(root, path)
		p.path = filepath.ToSlash(filepath.Join(module, "vmop", rel))
		out = append(out, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// look reads the declarations of a package.
func look(dir string) (apackage, error) {
	var p apackage
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return p, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if match, err := build.Default.MatchFile(dir, filepath.Base(file)); err != nil || !match {
			continue // for another platform
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return p, err
		}
		p.name = f.Name.Name
		for _, d := range f.Decls {
			p.add(d)
		}
	}
	slices.Sort(p.functions)
	slices.Sort(p.types)
	return p, nil
}

func (p *apackage) add(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Recv == nil && d.Type.TypeParams == nil {
			p.functions = append(p.functions, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			s, ok := s.(*ast.TypeSpec)
			if !ok || !s.Name.IsExported() || s.Assign.IsValid() || s.TypeParams != nil {
				continue
			}
			if _, ok := s.Type.(*ast.InterfaceType); !ok {
				p.types = append(p.types, s.Name.Name)
			}
		}
	}
}

// source is the table of a program.
func source(packages []apackage) []byte {
	var imports, functions, types strings.Builder
	for i, p := range packages {
		if len(p.functions)+len(p.types) == 0 {
			continue
		}
		fmt.Fprintf(&imports, "\tp%d %q\n", i, p.path)
		short := strings.TrimPrefix(p.path, module)
		for _, f := range p.functions {
			fmt.Fprintf(&functions, "\t{%q, p%d.%s},\n", short+"."+f, i, f)
		}
		for _, t := range p.types {
			fmt.Fprintf(&types, "\t{%q, new(p%d.%s)},\n", short+"."+t, i, t)
		}
	}
	return fmt.Appendf(nil, "package main\n\nimport (\n%s)\n\nvar functions = []named{\n%s}\n\nvar values = []named{\n%s}\n", &imports, &functions, &types)
}
