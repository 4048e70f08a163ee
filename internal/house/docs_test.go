package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var testName = regexp.MustCompile(`\b(Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*`)

// declaredTests are the names of all tests, fuzz targets and benchmarks of the tree,
// those behind build tags included, and of what packages for tests have for those of others.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declared := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go") && !(strings.HasSuffix(path, ".go") && strings.HasSuffix(filepath.Dir(path), "test")):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				declared[fn.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return declared
}

// A document that names a test promises that something is tried: a test that is
// renamed, or lost, takes its name along.
func TestDocumentsNameTestsThatAre(t *testing.T) {
	declared := declaredTests(t)
	root := filepath.Join("..", "..")
	named := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for n, line := range strings.Split(string(text), "\n") {
			for _, name := range testName.FindAllString(line, -1) {
				if named++; !declared[name] {
					t.Errorf("%s:%d: there is no %s", strings.TrimPrefix(path, root+"/"), n+1, name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 50 {
		t.Errorf("%d names were read", named)
	}
}

// The table of attacks has all numbers of the review, and a test for each.
func TestEachAttackHasATest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n| attack | before | now |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("docs/security.md has no table of attacks")
	}
	numbers := regexp.MustCompile(`^\| ([0-9]+(?:, [0-9]+)*)(?:, again)?: `)
	seen := map[int]bool{}
	for line := range strings.Lines(table) {
		if testName.FindString(line) == "" {
			t.Errorf("no test is named for the attack %.80q", line)
		}
		m := numbers.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, n := range strings.Split(m[1], ", ") {
			i, _ := strconv.Atoi(n)
			seen[i] = true
		}
	}
	for i := 1; i <= 18; i++ {
		if !seen[i] {
			t.Errorf("the attack of number %d is missing", i)
		}
	}
}

// The front page of the library names every package that a program can import, as a
// link, and none that is not there.
func TestTheFrontPageNamesThePackages(t *testing.T) {
	root := filepath.Join("..", "..", "vmop")
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "doc.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	const self = "github.com/vmop/sdk/vmop/"
	unseen := map[string]bool{}
	for _, m := range regexp.MustCompile(`\[`+self+`([a-z0-9/]+)\]`).FindAllStringSubmatch(f.Doc.Text(), -1) {
		unseen[m[1]] = true
	}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case d.Name() == "internal" || d.Name() == "testdata":
			return filepath.SkipDir
		}
		sources, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil || len(sources) == 0 || path == root {
			return err
		}
		below, err := filepath.Rel(root, path)
		if name := filepath.ToSlash(below); !unseen[name] {
			t.Errorf("vmop/doc.go does not name the package [%s%s]", self, name)
		} else {
			delete(unseen, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range unseen {
		t.Errorf("vmop/doc.go names [%s%s], which is no package", self, name)
	}
}

// Whoever imports a package finds in its documentation whether it stays as it is.
func TestEveryPackageSaysHowStableItIs(t *testing.T) {
	for _, p := range load(t, "./vmop/...") {
		if strings.Contains(p.name(), "internal/") || p.Name == "main" {
			continue
		}
		says := false
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			says = says || strings.Contains(f.Doc.Text(), "# Stability\n") || strings.Contains(f.Doc.Text(), "# What stays as it is\n")
		}
		if !says {
			t.Errorf("the documentation of %s has no heading Stability", p.name())
		}
	}
}

var numerals = []string{"none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "12", "13", "14", "15", "16"}

// The tables of docs/kinds.md name the files that a kind, a display and a device take, and say of
// how many: a file that is generated by now, or has moved, leaves them.
func TestTheFilesOfAKindAreThere(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "kinds.md"))
	if err != nil {
		t.Fatal(err)
	}
	counts := regexp.MustCompile(`(\w+) files (?:are written )?by hand[;,] (\w+) of them`)
	sections := strings.Split(string(text), "# Adding a ")[1:]
	if len(sections) != 3 {
		t.Fatalf("docs/kinds.md has %d sections with a table", len(sections))
	}
	for _, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		files, added := 0, 0
		for line := range strings.Lines(section) {
			cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			if !strings.HasPrefix(line, "| `") {
				continue
			}
			dir := ""
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				file := filepath.Join(dir, filepath.FromSlash(m[1]))
				files++
				if strings.Contains(file, "NAME") {
					added++
				} else if _, err := os.Stat(filepath.Join(root, file)); err != nil {
					t.Errorf("a %s: there is no %s", title, file)
				}
				dir = filepath.Dir(file)
			}
		}
		said := counts.FindStringSubmatch(section)
		if said == nil {
			t.Errorf("a %s: nothing says how many files are written by hand", title)
			continue
		}
		if got := slices.Index(numerals, strings.ToLower(said[1])); got != files {
			t.Errorf("a %s takes %d files, and the text says %s", title, files, said[1])
		}
		if got := slices.Index(numerals, strings.ToLower(said[2])); got != added {
			t.Errorf("a %s takes %d new files, and the text says %s", title, added, said[2])
		}
	}
}
