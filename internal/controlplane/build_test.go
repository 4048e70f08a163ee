package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/buildcache"
)

func TestSourceIsFoundFromAFolderBelow(t *testing.T) {
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	s, err := readSource(work)
	if err != nil {
		t.Fatal(err)
	}
	flags := strings.Join(s.flags(), " ")
	for _, want := range []string{"gitVersion=" + s.version + " ", "gitMajor=1 ", "-trimpath"} {
		if !strings.Contains(flags, want) {
			t.Errorf("no %q in %s", want, flags)
		}
	}
	if _, err := readSource(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("outside: %v", err)
	}
}

func TestKeyDependsOnEveryFileAndTheVersion(t *testing.T) {
	base := source{version: "v1.2.3", files: map[string]string{}}
	for _, name := range sourceFiles {
		base.files[name] = "content"
	}
	keys := map[string]string{base.key(): "unchanged"}
	add := func(what string, s source) {
		if other, seen := keys[s.key()]; seen {
			t.Errorf("%s and %s have one key", what, other)
		}
		keys[s.key()] = what
	}
	for _, name := range sourceFiles {
		s := source{version: base.version, files: maps.Clone(base.files)}
		s.files[name] += "."
		add(name, s)
	}
	add("version", source{version: "v1.2.4", files: base.files})
	again := source{dir: "elsewhere", version: base.version, files: maps.Clone(base.files)}
	if again.key() != base.key() {
		t.Error("the same source has two keys")
	}
}

func TestProgramsAreBuiltOnceForManyCallers(t *testing.T) {
	options := BuildOptions{CacheDir: t.TempDir(), Progress: io.Discard}
	const callers = 4
	builds := make(chan struct{}, callers)
	build := func(_ context.Context, dir string, _ io.Writer) error {
		builds <- struct{}{}
		return errors.Join(os.WriteFile(filepath.Join(dir, kubeall), []byte("program"), 0o700), os.WriteFile(filepath.Join(dir, Kubectl), []byte("program"), 0o700))
	}
	type result struct {
		programs Programs
		err      error
	}
	results := make(chan result)
	for range callers {
		go func() {
			p, err := ensure(t.Context(), options, "key", build)
			results <- result{p, err}
		}()
	}
	for range callers {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		for _, name := range ProgramNames() {
			if data, err := os.ReadFile(r.programs.Path(name)); err != nil || string(data) != "program" {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
	}
	if len(builds) != 1 {
		t.Errorf("%d builds", len(builds))
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	_, err := ensure(t.Context(), BuildOptions{CacheDir: dir, Progress: io.Discard}, "key", func(_ context.Context, dir string, _ io.Writer) error {
		return errors.Join(broken, os.WriteFile(filepath.Join(dir, kubeall), nil, 0o600))
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "controlplane", "*"))
	if err != nil || !slices.Equal(left, []string{filepath.Join(dir, "controlplane", "lock")}) {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestEnsureWaitsNoLongerThanItsContext(t *testing.T) {
	options := BuildOptions{CacheDir: t.TempDir(), Progress: io.Discard}
	cache, err := buildcache.Folder(options.CacheDir, cacheKind)
	if err != nil {
		t.Fatal(err)
	}
	held, err := buildcache.Lock(t.Context(), filepath.Join(cache, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ensure(ctx, options, "key", nil); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "somebody else is building") {
		t.Errorf("got %v", err)
	}
}

func TestBuildErrorsHaveWhatTheCompilerSays(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module broken\n\ngo 1.26\n",
		"kubeall/main.go": "package main\n\nfunc main() { undefinedName() }\n",
		"kubectl/main.go": "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var progress bytes.Buffer
	err := source{dir: dir, version: "v1.2.3"}.build(t.Context(), filepath.Join(t.TempDir(), "out"), &progress)
	if err == nil || !strings.Contains(err.Error(), "undefinedName") || !strings.Contains(progress.String(), "v1.2.3") {
		t.Errorf("got %v after %q", err, progress.String())
	}
}

func TestProgressIsShort(t *testing.T) {
	var lines, progress strings.Builder
	for i := range 450 {
		fmt.Fprintf(&lines, "package/%d\n", i)
	}
	last := relayProgress(strings.NewReader(lines.String()), &progress)
	if want := "kubeall: 200 packages done\nkubeall: 400 packages done\n"; progress.String() != want {
		t.Errorf("got %q", progress.String())
	}
	if !strings.HasPrefix(last, "package/430\n") || !strings.HasSuffix(last, "\npackage/449") {
		t.Errorf("got %q", last)
	}
}
