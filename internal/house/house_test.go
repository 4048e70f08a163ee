package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/vmop/sdk/"

// arrows lists, for each library package, the packages of this module that it
// may import. A package that is not listed is an error: decide where it stands.
var arrows = map[string][]string{
	"vmop/limits":          {},
	"vmop/spec":            {"internal/plainjson", "vmop/names", "vmop/conditions", "vmop/limits", "internal/editdistance", "internal/userdata", "internal/yamljson"},
	"vmop/conditions":      {},
	"vmop/qemucmd":         {"internal/plainjson", "internal/shellwords", "vmop/limits"},
	"vmop/qmp":             {},
	"vmop/qmp/goqemu":      {"vmop/qmp"},
	"vmop/qmp/qmptest":     {},
	"vmop/qga":             {},
	"vmop/qga/qgatest":     {},
	"vmop/vmopagent":       {"vmop/conditions"},
	"vmop/cloudinit":       {"internal/userdata", "internal/yamljson"},
	"vmop/imageinspect":    {},
	"vmop/hostprobe":       {"internal/atomicfile", "vmop/conditions", "vmop/qemucmd", "vmop/qmp"},
	"vmop/runnerconfig":    {"vmop/qemucmd", "internal/jsonwriter", "internal/yamljson", "vmop/limits"},
	"vmop/live":            {"vmop/conditions", "vmop/qemucmd", "vmop/runnerconfig"},
	"vmop/names":           {},
	"vmop/reconcile":       {"internal/jsonwriter", "vmop/conditions", "vmop/names"},
	"vmop/runner":          {"internal/answercd", "internal/atomicfile", "internal/filecopy", "internal/overlay", "internal/shellwords", "vmop/conditions", "vmop/limits", "vmop/qemucmd", "vmop/qmp", "vmop/qga", "vmop/vmopagent", "vmop/cloudinit", "vmop/imageinspect", "vmop/runnerconfig", "vmop/live", "vmop/runner/tap", "vmop/runner/tunnel"},
	"vmop/runner/tap":      {},
	"vmop/runner/vmstatus": {"vmop/conditions", "vmop/live", "vmop/runner"},
	"vmop/output":          {"internal/plainjson", "vmop/names", "vmop/spec"},
	"vmop/runner/tunnel":   {},
	"vmop/transfer":        {"internal/filecopy", "vmop/runner/tunnel"},
	"vmop/imagesource":     {"internal/atomicfile", "internal/filecopy", "vmop/imageinspect"},
	"vmop/host": {
		"vmop/imagesource", "internal/atomicfile", "internal/filecopy", "internal/overlay", "internal/shellwords", "internal/yamljson", "vmop/limits", "vmop/names", "vmop/spec", "vmop/qemucmd", "vmop/qmp", "vmop/hostprobe", "vmop/runnerconfig", "vmop/live", "vmop/reconcile/changes",
		"vmop/reconcile/machineconfig", "vmop/runner", "vmop/runner/vmstatus", "vmop/conditions", "vmop/imageinspect", "vmop/qga",
	},
	"vmop/inspect": {
		"vmop/conditions", "vmop/host", "vmop/imageinspect", "vmop/live", "vmop/qemucmd", "vmop/qmp", "vmop/reconcile/machineconfig", "vmop/runner", "vmop/spec",
		"internal/filecopy", "internal/textout",
	},
	"vmop/serial":    {},
	"vmop/rendering": {"internal/textout", "vmop", "vmop/cloudinit", "vmop/qemucmd", "vmop/reconcile", "vmop/runnerconfig"},
	"vmop": {
		"vmop/names", "vmop/spec", "vmop/qemucmd", "vmop/cloudinit", "vmop/runnerconfig", "vmop/reconcile", "vmop/reconcile/machineconfig",
		"vmop/reconcile/objects", "vmop/reconcile/changes", "vmop/reconcile/machine",
	},
	"vmop/spec/spectest":    {"internal/plainjson", "vmop/limits", "vmop/names", "vmop/spec"},
	"vmop/spec/internal":    {},
	"vmop/qmp/internal":     {},
	"vmop/qemucmd/internal": {},

	"vmop/dialect":           {"vmop/spec", "vmop/dialect/internal/tree", "vmop/dialect/kubevirt", "vmop/dialect/deckhouse"},
	"vmop/dialect/kubevirt":  {"vmop/limits", "vmop/names", "vmop/spec", "vmop/dialect/internal/seedscript", "vmop/dialect/internal/tree", "internal/yamljson"},
	"vmop/dialect/deckhouse": {"vmop/limits", "vmop/names", "vmop/spec", "vmop/dialect/internal/seedscript", "vmop/dialect/internal/tree", "internal/yamljson"},
	"vmop/dialect/internal":  {},

	"vmop/reconcile/machineconfig": {"internal/plainjson", "vmop/limits", "vmop/spec", "vmop/qemucmd", "vmop/runnerconfig", "internal/yamljson", "vmop/reconcile/internal/manifest"},
	"vmop/reconcile/objects":       {"vmop/limits", "vmop/names", "vmop/spec", "vmop/qemucmd", "vmop/runnerconfig", "vmop/reconcile/machineconfig"},
	"vmop/reconcile/changes":       {"internal/plainjson", "internal/printable", "vmop/limits", "vmop/spec", "vmop/reconcile/internal/manifest"},
	"vmop/reconcile/machine": {
		"internal/jsonwriter", "vmop/conditions", "vmop/names", "vmop/spec", "vmop/runnerconfig", "vmop/reconcile", "vmop/reconcile/machineconfig",
		"vmop/reconcile/objects", "vmop/reconcile/changes", "vmop/reconcile/attachment", "vmop/reconcile/pool", "vmop/reconcile/internal/manifest",
	},
	"vmop/reconcile/machine/machinetest": {
		"internal/displaycert", "internal/promises", "vmop/names", "vmop/runnerconfig", "vmop/spec", "vmop/reconcile", "vmop/reconcile/changes", "vmop/reconcile/machine",
		"vmop/reconcile/machineconfig", "vmop/reconcile/objects",
	},
	"vmop/reconcile/operation":  {"vmop/conditions", "vmop/names", "vmop/spec", "vmop/reconcile", "vmop/reconcile/machine", "vmop/reconcile/objects"},
	"vmop/reconcile/disk":       {"vmop/conditions", "vmop/names", "vmop/runnerconfig", "vmop/spec", "vmop/reconcile", "vmop/reconcile/machine", "vmop/reconcile/objects"},
	"vmop/reconcile/attachment": {"vmop/conditions", "vmop/limits", "vmop/names", "vmop/spec", "vmop/reconcile", "vmop/reconcile/objects"},
	"vmop/reconcile/attachment/attachmenttest": {
		"internal/displaycert", "internal/promises", "vmop/conditions", "vmop/names", "vmop/spec", "vmop/reconcile", "vmop/reconcile/attachment", "vmop/reconcile/objects",
	},
	"vmop/reconcile/disk/disktest": {
		"internal/displaycert", "internal/promises", "vmop/conditions", "vmop/names", "vmop/runnerconfig", "vmop/spec", "vmop/reconcile", "vmop/reconcile/disk", "vmop/reconcile/objects",
	},
	"vmop/reconcile/operation/operationtest": {
		"internal/promises", "vmop/conditions", "vmop/names", "vmop/spec", "vmop/reconcile", "vmop/reconcile/machine", "vmop/reconcile/operation",
	},
	"vmop/reconcile/pool/pooltest": {"internal/promises", "vmop/names", "vmop/spec", "vmop/reconcile", "vmop/reconcile/pool"},

	"vmop/reconcile/observation": {},
	"vmop/reconcile/console":     {"vmop/names", "vmop/spec", "vmop/reconcile/objects", "vmop/reconcile/pool", "vmop/reconcile/internal/manifest"},

	"vmop/operatorconfig": {"internal/yamljson", "vmop/spec", "vmop/reconcile/objects", "vmop/reconcile/operation", "vmop/reconcile/console"},
	"vmop/takeover": {
		"internal/shellwords", "vmop/names", "vmop/spec", "vmop/qemucmd", "vmop/reconcile", "vmop/reconcile/machineconfig",
		"vmop/reconcile/objects", "vmop/reconcile/machine", "vmop/operatorconfig",
	},
}

// decision is what a folder of vmop/reconcile may import, unless arrows has it: one is
// the decision about a kind.
var decision = []string{"vmop/conditions", "vmop/names", "vmop/spec", "vmop/reconcile", "vmop/reconcile/objects"}

// mayImport returns what a package may import of this module, and reports whether that is
// known.
func mayImport(name string) ([]string, bool) {
	allowed, listed := arrows[name]
	if !listed && path.Dir(name) == "vmop/reconcile" {
		return decision, true
	}
	return allowed, listed
}

// standardOnly are the packages that depend on nothing but the standard library.
var standardOnly = []string{"vmop/limits", "vmop/names", "vmop/conditions", "vmop/qemucmd", "vmop/qmp", "vmop/qmp/qmptest", "vmop/qga", "vmop/vmopagent"}

// pure are the packages whose functions depend on their arguments alone; so are the
// folders of vmop/reconcile.
var pure = []string{
	"vmop/limits", "vmop", "vmop/spec", "vmop/names", "vmop/conditions", "vmop/qemucmd", "vmop/runnerconfig", "vmop/live", "vmop/operatorconfig", "vmop/output", "vmop/takeover", "internal/editdistance", "internal/jsonwriter", "internal/plainjson", "internal/printable", "internal/shellwords", "internal/userdata", "internal/yamljson",
	"vmop/reconcile", "vmop/reconcile/internal/manifest",
	"vmop/dialect", "vmop/dialect/kubevirt", "vmop/dialect/deckhouse",
}

func isPure(name string) bool {
	return slices.Contains(pure, name) || path.Dir(name) == "vmop/reconcile"
}

// impureImports and impureCalls are ways out of a pure function.
var (
	impureImports = []string{"os", "os/exec", "math/rand", "math/rand/v2", "crypto/rand", "net/http", "syscall", "golang.org/x/sys/unix"}
	impureCalls   = []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.Tick", "time.NewTimer", "time.NewTicker", "filepath.Abs", "filepath.Glob", "filepath.EvalSymlinks", "filepath.Walk", "filepath.WalkDir"}
)

// specImports is what API types may import beside the standard library.
var specImports = []string{module + "vmop/limits", module + "internal/editdistance", module + "internal/plainjson", module + "internal/userdata", module + "internal/yamljson", module + "vmop/names", module + "vmop/conditions", "k8s.io/apimachinery/", "k8s.io/api/", "go.yaml.in/yaml/v3", "sigs.k8s.io/yaml"}

type pkg struct {
	ImportPath string
	Name       string
	Doc        string
	Dir        string
	Standard   bool
	GoFiles    []string
	Imports    []string
	Deps       []string
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

func load(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Doc,Dir,Standard,GoFiles,Imports,Deps"}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

func TestArrowsPointDown(t *testing.T) {
	for _, p := range load(t, "./vmop/...") {
		allowed, listed := mayImport(p.name())
		if i := strings.Index(p.name(), "/internal/"); i >= 0 {
			continue // test support and generators of one package
		}
		if !listed {
			t.Errorf("%s is not in the house: add it to arrows", p.name())
			continue
		}
		for _, imp := range p.Imports {
			if own := strings.TrimPrefix(imp, module); own != imp && !slices.Contains(allowed, own) {
				t.Errorf("%s imports %s; it may import %v", p.name(), own, allowed)
			}
		}
	}
}

// Neither a library package nor another front-end imports a front-end.
func TestNothingImportsFrontends(t *testing.T) {
	for _, p := range load(t, "./...") {
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module+"frontends/") && frontend(p.ImportPath) != frontend(imp) {
				t.Errorf("%s imports %s", p.name(), imp)
			}
		}
	}
}

// frontend is the program that a package belongs to; empty for all others.
func frontend(importPath string) string {
	name, ok := strings.CutPrefix(importPath, module+"frontends/")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, "/")
	return name
}

func TestStandardLibraryOnly(t *testing.T) {
	standard := map[string]bool{}
	for _, p := range load(t, "std") {
		standard[p.ImportPath] = true
	}
	for _, p := range load(t, "./vmop/...") {
		if !slices.Contains(standardOnly, p.name()) {
			continue
		}
		for _, dep := range p.Deps {
			if !standard[dep] && !strings.HasPrefix(dep, module) {
				t.Errorf("%s depends on %s", p.name(), dep)
			}
		}
	}
}

func TestSpecImports(t *testing.T) {
	for _, p := range load(t, "./vmop/spec") {
		for _, imp := range p.Imports {
			first, _, _ := strings.Cut(imp, "/")
			if strings.Contains(first, ".") && !slices.ContainsFunc(specImports, func(ok string) bool { return strings.HasPrefix(imp, ok) }) {
				t.Errorf("vmop/spec imports %s", imp)
			}
		}
	}
}

func TestOnlyTheAdapterImportsGoQEMU(t *testing.T) {
	for _, p := range load(t, "./...") {
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "github.com/digitalocean/go-qemu") && p.name() != "vmop/qmp/goqemu" {
				t.Errorf("%s imports %s", p.name(), imp)
			}
		}
	}
}

// Registries' client is large: it is for programs that fetch images, which the runner is
// in a pod (an idle one has 36 KiB more of memory for it), and neither for the front door
// nor for the engine or the operator.
func TestOnlyImageSourcesImportRegistries(t *testing.T) {
	const client = "github.com/google/go-containerregistry"
	for _, p := range load(t, "./vmop/...") {
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, client) && p.name() != "vmop/imagesource" {
				t.Errorf("%s imports %s", p.name(), imp)
			}
		}
	}
	for _, p := range load(t, "./vmop", "./vmop/runner", "./frontends/operator") {
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, client) {
				t.Errorf("%s depends on %s", p.name(), dep)
			}
		}
	}
}

// What draws or fails is for tests, ours and other people's: no program has it in it.
func TestOnlyTestsImportWhatTests(t *testing.T) {
	forTests := func(path string) bool {
		return path == "testing" || path == "pgregory.net/rapid" || strings.HasPrefix(path, module) && strings.HasSuffix(path, "test")
	}
	found := false
	for _, p := range load(t, "./vmop/...", "./frontends/...") {
		found = found || p.name() == "vmop/spec/spectest" && slices.ContainsFunc(p.Deps, forTests)
		if forTests(p.ImportPath) || strings.Contains(p.name(), "/internal/") {
			continue
		}
		for _, dep := range p.Deps {
			if forTests(dep) {
				t.Errorf("%s depends on %s", p.name(), dep)
			}
		}
	}
	if !found {
		t.Error("the package that draws machines was not found to be for tests")
	}
}

func TestNoProcessAndNoCluster(t *testing.T) {
	for _, p := range load(t, "./vmop/...", "./internal/...") {
		if !isPure(p.name()) && p.name() != "vmop/qmp" {
			continue
		}
		if slices.Contains(p.Imports, "os/exec") {
			t.Errorf("%s imports os/exec", p.name())
		}
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "k8s.io/client-go/") || strings.HasPrefix(dep, "sigs.k8s.io/controller-runtime/") {
				t.Errorf("%s depends on %s", p.name(), dep)
			}
		}
	}
}

// The runner is small because it knows nothing of Kubernetes' types.
func TestRunnerIsSmall(t *testing.T) {
	for _, p := range load(t, "./vmop/runner") {
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "k8s.io/") {
				t.Errorf("vmop/runner depends on %s", dep)
			}
		}
	}
}

func TestPurePackages(t *testing.T) {
	found := 0
	for _, p := range load(t, "./vmop/...", "./internal/...") {
		if !isPure(p.name()) {
			continue
		}
		found++
		for _, imp := range p.Imports {
			if slices.Contains(impureImports, imp) {
				t.Errorf("%s imports %s", p.name(), imp)
			}
		}
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(impureCalls, x.Name+"."+sel.Sel.Name) {
					t.Errorf("%s: %s.%s", fset.Position(sel.Pos()), x.Name, sel.Sel.Name)
				}
				return true
			})
		}
	}
	if found < 5 {
		t.Errorf("looked at %d pure packages only", found)
	}
}
