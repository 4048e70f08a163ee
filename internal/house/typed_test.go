package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// typedPackage is a package of this module with the types of its source, tests left out.
type typedPackage struct {
	name  string
	dir   string
	files []*ast.File
	scope *types.Package
	info  *types.Info
}

// positions are those of [typedPackages].
var positions = token.NewFileSet()

// typedPackages are the packages of this module, each behind those that it imports. What is
// not of this module comes as the compiler left it: the tests need it anyway.
var typedPackages = sync.OnceValues(func() ([]typedPackage, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,ImportMap", "./...")
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	from := sources{compiled: map[string]string{}, own: map[string]*types.Package{}}
	from.others = importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(from.compiled[path])
	})
	var typed []typedPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return typed, nil
		} else if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(p.ImportPath, module) {
			from.compiled[p.ImportPath] = p.Export
			continue
		}
		q := typedPackage{
			name: strings.TrimPrefix(p.ImportPath, module), dir: p.Dir,
			info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}},
		}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(positions, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				return nil, err
			}
			q.files = append(q.files, f)
		}
		conf := types.Config{Importer: from, Sizes: types.SizesFor("gc", runtime.GOARCH)}
		if q.scope, err = conf.Check(p.ImportPath, positions, q.files, q.info); err != nil {
			return nil, err
		}
		from.own[p.ImportPath] = q.scope
		typed = append(typed, q)
	}
})

// sources imports a package from its source if it is of this module.
type sources struct {
	compiled map[string]string
	own      map[string]*types.Package
	others   types.Importer
}

func (s sources) Import(path string) (*types.Package, error) {
	if p := s.own[path]; p != nil {
		return p, nil
	}
	return s.others.Import(path)
}

// fileOf is the name of the file that declares an object.
func fileOf(o types.Object) string {
	return filepath.Base(positions.Position(o.Pos()).Filename)
}

func mustTyped(t *testing.T) []typedPackage {
	t.Helper()
	typed, err := typedPackages()
	if err != nil {
		t.Fatal(err)
	}
	return typed
}
