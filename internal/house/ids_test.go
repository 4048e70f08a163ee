package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// The ids of QEMU's devices and the names of its sockets are package qemucmd's:
// a second spelling in a program that speaks to QEMU would go on to compile when
// the first one changes.
func TestIDsAreWrittenOnce(t *testing.T) {
	names := []string{
		qemucmd.BalloonID, qemucmd.VideoID, qemucmd.SeedFileName,
		qemucmd.GuestAgentChannel, qemucmd.VMOPAgentChannel, qemucmd.SPICEAgentChannel,
		qemucmd.GuestAgentChardev, qemucmd.VMOPAgentChardev, qemucmd.SPICEAgentChardev,
	}
	for _, p := range qemucmd.SocketPurposes() {
		names = append(names, p.FileName())
	}
	numbered := regexp.MustCompile(`^(disk|cd|net|cpu-|hostnet|drive-|redir)(%[dv]|[0-9])|-backend$|^` + qemucmd.Peripheral)
	files := 0
	for _, p := range load(t, "./vmop/...", "./frontends/...") {
		if strings.HasPrefix(p.name(), "vmop/qemucmd") || p.name() == "vmop/vmopagent" {
			continue
		}
		for _, name := range p.GoFiles {
			files++
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err == nil && (slices.Contains(names, text) || numbered.MatchString(text)) {
					t.Errorf("%s: %q is written here and in package qemucmd: use its constant or function", set.Position(lit.Pos()), text)
				}
				return true
			})
		}
	}
	if files < 100 {
		t.Errorf("%d files were read", files)
	}
}
