package house

import (
	"go/ast"
	"go/types"
	"strings"
	"testing"
)

// endBefore are packages whose programs have ended before a runner takes orphans for its own.
var endBefore = map[string]string{
	"vmop/hostprobe": "the host is probed before there is an engine",
}

// TestProgramsOfTheRunnerLeadGroups: the first process of a pod reaps what ends in a group that it
// does not lead, as an orphan. A program that the runner has started itself and waits for must lead
// one, or its end is lost ("waitid: no child processes").
func TestProgramsOfTheRunnerLeadGroups(t *testing.T) {
	typed := mustTyped(t)
	imports := map[string][]*types.Package{}
	for _, p := range typed {
		imports[p.name] = p.scope.Imports()
	}
	ofRunner := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if ofRunner[name] {
			return
		}
		ofRunner[name] = true
		for _, i := range imports[name] {
			if own, is := strings.CutPrefix(i.Path(), module); is {
				add(own)
			}
		}
	}
	add("frontends/runner")
	found := 0
	for _, p := range typed {
		if !ofRunner[p.name] || endBefore[p.name] != "" {
			continue
		}
		for _, f := range p.files {
			for _, d := range f.Decls {
				starts, leads := 0, 0
				ast.Inspect(d, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.Ident:
						if fn, is := p.info.Uses[n].(*types.Func); is && startsProgram(fn) {
							starts++
						}
					case *ast.KeyValueExpr:
						key, is := n.Key.(*ast.Ident)
						value, known := n.Value.(*ast.Ident)
						if is && known && key.Name == "Setpgid" && value.Name == "true" {
							leads++
						}
					}
					return true
				})
				found += starts
				if starts != leads {
					t.Errorf("%s: %d programs are started, and %d get a group of their own (SysProcAttr.Setpgid)", positions.Position(d.Pos()), starts, leads)
				}
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d programs are found", found)
	}
}

func startsProgram(f *types.Func) bool {
	switch f.FullName() {
	case "os/exec.Command", "os/exec.CommandContext", "os.StartProcess", "syscall.StartProcess", "syscall.ForkExec":
		return true
	}
	return false
}
