package house

import (
	"go/ast"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// circles are the files that need each other, by package, with the reason why they are not
// parted. The files of all other packages can be read in an order in which each needs only
// those before it.
var circles = map[string][]circle{
	"vmop/qmp": {{
		files: []string{"client.go", "subscription.go"},
		why:   "a client has its subscriptions, and each of them its client",
	}},
	"vmop/qmp/qmptest": {{
		files: []string{"call.go", "server.go"},
		why:   "a server has its calls answered, and each of them has its server",
	}},
}

type circle struct {
	files []string
	why   string
}

// TestFilesOfAPackageHaveAnOrder holds the arrows between the files of a package: one file
// points at another where it uses what the other declares, methods and fields included.
func TestFilesOfAPackageHaveAnOrder(t *testing.T) {
	looked := 0
	for _, p := range mustTyped(t) {
		if !strings.HasPrefix(p.name, "vmop") && !strings.HasPrefix(p.name, "frontends/") {
			continue
		}
		looked++
		arrows := arrowsBetweenFiles(p)
		allowed := circles[p.name]
		for _, files := range stronglyConnected(arrows) {
			if len(files) == 1 {
				continue
			}
			i := slices.IndexFunc(allowed, func(c circle) bool { return slices.Equal(c.files, files) })
			if i >= 0 {
				allowed = slices.Delete(slices.Clone(allowed), i, i+1)
				continue
			}
			t.Errorf("%s: %s need each other:", p.name, strings.Join(files, ", "))
			for _, from := range files {
				for to, what := range arrows[from] {
					if slices.Contains(files, to) {
						t.Errorf("  %s uses of %s: %s", from, to, strings.Join(what, ", "))
					}
				}
			}
		}
		for _, c := range allowed {
			t.Errorf("%s: %s need each other no more: take them from the list", p.name, strings.Join(c.files, ", "))
		}
	}
	if looked < 40 {
		t.Errorf("looked at %d packages only", looked)
	}
}

// arrowsBetweenFiles has for each file of a package the others that it uses, with the names.
func arrowsBetweenFiles(p typedPackage) map[string]map[string][]string {
	arrows := map[string]map[string][]string{}
	for _, f := range p.files {
		if ast.IsGenerated(f) {
			continue
		}
		from := filepath.Base(positions.Position(f.Pos()).Filename)
		arrows[from] = map[string][]string{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, is := n.(*ast.Ident)
			if !is {
				return true
			}
			o := p.info.Uses[id]
			if o == nil || o.Pkg() != p.scope {
				return true
			}
			if _, is := o.(*types.PkgName); is {
				return true
			}
			if to := fileOf(o); to != from && !slices.Contains(arrows[from][to], o.Name()) {
				arrows[from][to] = append(arrows[from][to], o.Name())
			}
			return true
		})
	}
	return arrows
}

// stronglyConnected are the sets of files each of which leads to all others of its set
// (Tarjan), each sorted.
func stronglyConnected(arrows map[string]map[string][]string) [][]string {
	var (
		stack  []string
		sets   [][]string
		number = map[string]int{}
		low    = map[string]int{}
		visit  func(v string)
	)
	visit = func(v string) {
		number[v] = len(number) + 1
		low[v] = number[v]
		stack = append(stack, v)
		for w := range arrows[v] {
			if number[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if slices.Contains(stack, w) {
				low[v] = min(low[v], number[w])
			}
		}
		if low[v] == number[v] {
			i := slices.Index(stack, v)
			set := slices.Sorted(slices.Values(stack[i:]))
			stack = stack[:i]
			sets = append(sets, set)
		}
	}
	for v := range arrows {
		if number[v] == 0 {
			visit(v)
		}
	}
	return sets
}
