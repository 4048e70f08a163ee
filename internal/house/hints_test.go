package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// onHosts are command lines with a place for something that a host has: paths, and what else
// people name as they like.
var onHosts = regexp.MustCompile(`(?:^|[^a-z-])(chgrp|chmod|chown|cp|kill|loginctl|ls|mkdir|mount -[a-z]|mv|qemu-img [crir][a-z]+|rm|setfacl|sudo|touch|umount) [^.;)]*?%(\[\d\])?[a-z]|--disk %(\[\d\])?s=|--(data-dir|kubeconfig|context|image-repository)[ =]%(\[\d\])?[a-z]`)

// inClusters are those with names of Kubernetes, which need no quotes. vmop-cli's own are
// quoted anyway, because of the flags that go with them.
var inClusters = regexp.MustCompile(`(kubectl|vmop-cli) [^.;)]*?%(\[\d\])?[a-z]`)

// A command line that a message tells is one that a shell reads as it is meant: what is put
// into it is quoted, by one package.
func TestPrintedCommandsAreQuoted(t *testing.T) {
	files := token.NewFileSet()
	quoting := 0
	for _, dir := range []string{"vmop", "frontends", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			own := strings.Contains(filepath.ToSlash(path), "internal/shellwords/")
			ast.Inspect(f, func(n ast.Node) bool {
				lit, is := n.(*ast.BasicLit)
				if !is || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Errorf("%s: %v", files.Position(lit.Pos()), err)
				}
				if text == `'\''` && own {
					quoting++
				} else if text == `'\''` {
					t.Errorf("%s: package shellwords quotes for shells", files.Position(lit.Pos()))
				}
				if onHosts.MatchString(text) || strings.Contains(filepath.ToSlash(path), "frontends/cli/") && inClusters.MatchString(text) {
					t.Errorf("%s: %s: have package shellwords make the command line", files.Position(lit.Pos()), lit.Value)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if quoting != 1 {
		t.Errorf("package shellwords quotes in %d places", quoting)
	}
	for _, text := range []string{"it takes: setfacl -m u:%d:%s %s", "with: chmod u+s %s, and", "chown -R %d:%[1]d %s", "give it with --disk %s=%s"} {
		if !onHosts.MatchString(text) {
			t.Errorf("%q is no command line", text)
		}
	}
	for _, text := range []string{"see kubectl get vmbda -n %s", "start it with vmop-cli start %s"} {
		if !inClusters.MatchString(text) {
			t.Errorf("%q is no command line", text)
		}
	}
}
