package house

import (
	"bytes"
	"flag"
	"fmt"
	"go/doc"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/packages.md and the lists of what packages export instead of comparing them")

// The table is between these lines of docs/packages.md.
const (
	tableBegin = "<!-- the packages, by go test ./internal/house -update -->\n"
	tableEnd   = "<!-- end of the packages -->\n"
)

// TestTableOfPackages holds the table in docs/packages.md to [mayImport] and to what the
// packages say of themselves.
func TestTableOfPackages(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "packages.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := bytes.Cut(text, []byte(tableBegin))
	old, after, ended := bytes.Cut(rest, []byte(tableEnd))
	if !found || !ended {
		t.Fatalf("%s has no table between %q and %q", file, tableBegin, tableEnd)
	}
	table := tableOf(load(t, "./vmop/...", "./frontends/..."))
	if *update {
		all := slices.Concat(before, []byte(tableBegin), []byte(table), []byte(tableEnd), after)
		if err := os.WriteFile(file, all, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(old) != table {
		t.Errorf("%s: the table of packages is old; run: go test ./internal/house -run TestTableOfPackages -update", file)
	}
}

func tableOf(packages []pkg) string {
	var b strings.Builder
	b.WriteString("| package | what it is | may import |\n|---|---|---|\n")
	for _, p := range packages {
		if strings.Contains(p.name()+"/", "/internal/") {
			continue
		}
		var imports []string
		allowed, _ := mayImport(p.name())
		for _, imp := range allowed {
			imports = append(imports, strings.TrimPrefix(imp, "vmop/"))
		}
		slices.Sort(imports)
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.name(), synopsis(p), strings.Join(imports, ", "))
	}
	return b.String()
}

// synopsis is the first sentence of a package's documentation, without its own
// name.
func synopsis(p pkg) string {
	s := (&doc.Package{}).Synopsis(p.Doc)
	s = strings.TrimPrefix(s, "Package "+p.Name+" ")
	if first, rest, found := strings.Cut(s, " "); found && first == "Command" {
		_, s, _ = strings.Cut(rest, " ")
	}
	s = strings.NewReplacer("[", "", "]", "", "|", "\\|").Replace(s)
	return strings.TrimSuffix(s, ".")
}
