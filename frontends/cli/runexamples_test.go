package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/vmop/spec"
)

// exampleDirs have the scripts that run the examples as they stand, by the command
// example.
var exampleDirs = []string{"host", "guest", "cluster"}

// helpExamples are the examples in the help of a program and its commands.
func helpExamples(app *cli.App) []string {
	descriptions := []string{app.Description}
	for _, c := range app.Commands {
		descriptions = append(descriptions, c.Description)
	}
	var out []string
	for _, d := range descriptions {
		in := false
		for line := range strings.Lines(d) {
			line = strings.TrimSuffix(line, "\n")
			text, indented := strings.CutPrefix(line, "  ")
			switch {
			case line == "Example:" || line == "Examples:" || line == "For this shell:":
				in = true
			case in && indented:
				out = append(out, strings.Join(strings.Fields(text), " "))
			case in && line != "":
				in = false
			}
		}
	}
	return out
}

// readmeExamples are the command lines in the code blocks of a document: those behind a
// prompt, and those of blocks that have no output. Comments belong to the reader.
func readmeExamples(document string) []string {
	var out []string
	comment := regexp.MustCompile(`\s+# .*$`)
	fence, output := "", false
	for line := range strings.Lines(document) {
		line = strings.TrimSuffix(line, "\n")
		if language, is := strings.CutPrefix(line, "```"); is {
			if fence == "" {
				fence, output = "```"+language, false
			} else {
				fence = ""
			}
			continue
		}
		command, prompted := strings.CutPrefix(line, "$ ")
		indented, block := strings.CutPrefix(line, "    ")
		switch {
		case fence == "```" && prompted, fence == "```sh" && prompted:
			out, output = append(out, comment.ReplaceAllString(command, "")), true
		case fence == "" && block && !output:
			out = append(out, comment.ReplaceAllString(indented, ""))
		}
		if fence == "" {
			output = false
		}
	}
	return out
}

// ranExamples are those that scripts run.
func ranExamples(t *testing.T) []string {
	t.Helper()
	var out []string
	example := regexp.MustCompile(`(?m)^(?:! )?example (?:-until \S+ )?(.*)$`)
	for _, dir := range exampleDirs {
		files, err := filepath.Glob(filepath.Join("testdata", "examples", dir, "*.txtar"))
		if err != nil || len(files) == 0 {
			t.Fatalf("scripts of %s: %v, %v", dir, files, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, _, _ := strings.Cut(string(data), "\n-- ")
			for _, m := range example.FindAllStringSubmatch(script, -1) {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// notRun are the examples of the README that would run all tests, or do not end, and
// what shows at least that the program understands them.
var notRun = map[string][]string{
	"make run":           {"make", "-n", "run"},
	"make test":          {"make", "-n", "test"},
	"make build":         {"make", "-n", "build"},
	"make control-plane": {"make", "-n", "control-plane"},
	// Its port may be another program's.
	"bin/vm-operator --metrics-bind-address=127.0.0.1:8080": {"go", "run", "./frontends/operator", "--metrics-bind-address=127.0.0.1:8080", "--help"},
}

// What help and README show is what somebody types: each example is run as it stands.
func TestEveryExampleIsRun(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := helpExamples((&program{getenv: func(string) string { return "" }}).app())
	if len(shown) < 80 {
		t.Errorf("the help has only %d examples", len(shown))
	}
	fromREADME := readmeExamples(string(readme))
	if len(fromREADME) < 12 {
		t.Errorf("README has only %d examples: %q", len(fromREADME), fromREADME)
	}
	ran := ranExamples(t)
	for _, e := range slices.Concat(shown, fromREADME) {
		if _, is := notRun[e]; !is && !slices.Contains(ran, e) {
			t.Errorf("no script of testdata/examples runs: %s", e)
		}
	}
	for _, e := range ran {
		if !slices.Contains(shown, e) && !slices.Contains(fromREADME, e) {
			t.Errorf("neither help nor README has what a script runs: %s", e)
		}
	}
	for e, args := range notRun {
		if !slices.Contains(fromREADME, e) {
			t.Errorf("%s is no example of README's", e)
		}
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", e, err, out)
		}
	}
}

// An example that nobody runs is found, whatever stands around it.
func TestExamplesAreFound(t *testing.T) {
	app := &cli.App{Description: "Does.\n\nExample:\n  one a\n", Commands: []*cli.Command{
		{Description: "Text:\n  no example\n\nExamples:\n  two | b\n  three\n\nMore:\n  none"}, {Description: "For this shell:\n  bash: four"},
	}}
	if got := strings.Join(helpExamples(app), ";"); got != "one a;two | b;three;bash: four" {
		t.Errorf("help: %s", got)
	}
	const doc = "Text\n\n    make run     # builds\n    make test\n\n```\n$ six x   # says\noutput\n$ seven\n```\n\n```go\n$ no\n    no\n```\n"
	if got := strings.Join(readmeExamples(doc), ";"); got != "make run;make test;six x;seven" {
		t.Errorf("README: %s", got)
	}
}

// exampleCommand runs the rest of its line by bash: example [-until PATTERN] LINE. With
// -until it is interrupted as soon as it has printed what matches, which it has to.
func exampleCommand(ts *testscript.TestScript, neg bool, args []string) {
	var until *regexp.Regexp
	if len(args) > 2 && args[0] == "-until" {
		until = regexp.MustCompile(args[1])
		args = args[2:]
	}
	if len(args) == 0 || neg && until != nil {
		ts.Fatalf("usage: [!] example [-until PATTERN] LINE")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	shell := "bash"
	if name, is := strings.CutSuffix(args[0], ":"); is { // completion has one for each shell
		shell, args = name, args[1:]
	}
	line := strings.Join(args, " ")
	if shell == "zsh" { // whoever completes there has its completions
		line = "autoload -Uz compinit && compinit -u -D && " + line
	}
	cmd := exec.CommandContext(ctx, shell, "-c", line)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_RUNTIME_DIR", "VMOP_DATA_DIR", "KUBECONFIG", "USER", "TMPDIR", "GORACE", "EDITOR", "HTTPS_PROXY", "SSL_CERT_FILE", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOSUMDB"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	seen := make(chan struct{})
	out := &watched{until: until, seen: seen}
	cmd.Stdout, cmd.Stderr = out, out
	ts.Check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	if until == nil {
		err = <-done
	} else {
		select {
		case <-seen:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
			select {
			case <-done:
			case <-ctx.Done():
			}
		case err = <-done:
			select {
			case <-seen:
				err = nil
			default:
				err = errors.Join(err, fmt.Errorf("it has not printed %v", until))
			}
		}
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what a pipe has left
	ts.Logf("[output]\n%s", out.String())
	switch {
	case ctx.Err() != nil:
		ts.Fatalf("it takes longer than %v", patience)
	case err != nil && !neg:
		ts.Fatalf("%v", err)
	case err == nil && neg:
		ts.Fatalf("it was expected to fail")
	case strings.Contains(out.String(), "vmop-cli --help") || strings.Contains(out.String(), "See: vmop-cli"):
		ts.Fatalf("it is wrong usage")
	}
}

// watched keeps what is printed, and says when a pattern is in it.
type watched struct {
	mu    sync.Mutex
	text  strings.Builder
	until *regexp.Regexp
	seen  chan struct{}
	told  bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if w.until != nil && !w.told && w.until.MatchString(w.text.String()) {
		w.told = true
		close(w.seen)
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// exampleSetup is that of scripts, with the file of the README beside them.
func exampleSetup(e *testscript.Env) error {
	if err := setup(e); err != nil {
		return err
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	for _, dir := range []string{"examples", "deploy"} {
		if err := os.Symlink(filepath.Join(root, dir), filepath.Join(e.WorkDir, dir)); err != nil {
			return err
		}
	}
	e.Setenv("USER", "ann")
	e.Setenv("PATH", filepath.Join(e.WorkDir, "bin")+string(os.PathListSeparator)+e.Getenv("PATH"))
	return nil
}

// Examples that need no guest.
func TestHostExamples(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		testbin.Find(t, shell)
	}
	testbin.Find(t, testbin.QEMU)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/examples/host", Setup: exampleSetup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"example": exampleCommand, "serve-https": serveHTTPSCommand},
	})
}

// Examples that are about machines that run.
func TestGuestExamples(t *testing.T) {
	t.Parallel()
	guest := testbin.TinyGuest(t)
	testbin.Find(t, testbin.QEMU)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/examples/guest",
		Setup: func(e *testscript.Env) error {
			if err := exampleSetup(e); err != nil {
				return err
			}
			if err := setPort(e); err != nil {
				return err
			}
			return exportGuest(guest, filepath.Join(e.WorkDir, "images"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"example": exampleCommand, "until": untilCommand, "guest": guestCommand, "guest-disk": diskOfGuest(guest)},
	})
}

// Examples that are about a cluster: an API server, where nothing but the script acts.
func TestClusterExamples(t *testing.T) {
	t.Parallel()
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	// An operator that completes whatever is asked for.
	objects, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var operator sync.WaitGroup
	operator.Go(func() { completeOperations(ctx, objects) })
	t.Cleanup(func() {
		cancel()
		operator.Wait()
	})
	testscript.Run(t, testscript.Params{
		Dir: "testdata/examples/cluster",
		Setup: func(e *testscript.Env) error {
			if err := exampleSetup(e); err != nil {
				return err
			}
			e.Setenv("KUBECONFIG", cluster.Kubeconfig())
			e.Setenv("PATH", e.Getenv("PATH")+string(os.PathListSeparator)+cluster.Programs().Dir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"example": exampleCommand},
	})
}

// completeOperations is an operator that has always done already what it is asked for: it
// completes operations, has made disks of any size, and attached them, until ctx ends.
func completeOperations(ctx context.Context, objects dynamic.Interface) {
	condition := func(kind string, generation int64) string {
		return fmt.Sprintf(`{"type":%q,"status":"True","reason":"Done","message":"","observedGeneration":%d,"lastTransitionTime":"2026-01-01T00:00:00Z"}`, kind, generation)
	}
	kinds := map[string]func(generation int64) string{
		spec.ResourceOperations:  func(int64) string { return `{"status":{"phase":"Completed"}}` },
		spec.ResourceAttachments: func(int64) string { return `{"status":{"phase":"Attached"}}` },
		spec.ResourceDisks: func(g int64) string {
			return `{"status":{"phase":"Ready","conditions":[` + condition("Ready", g) + "," + condition("Resized", g) + `]}}`
		},
	}
	for ctx.Err() == nil {
		for resource, status := range kinds {
			all := objects.Resource(spec.GroupVersion().WithResource(resource))
			// Before there is the definition, there is nothing to do.
			list, err := all.List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, o := range list.Items {
				_, _ = all.Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, []byte(status(o.GetGeneration())), metav1.PatchOptions{}, "status")
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// The program in README.md is whole: it compiles, and prints a command line of the
// manifest that it names.
func TestProgramsOfREADME(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) == 0 {
		t.Fatal("README.md has no program")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, block := range blocks {
		dir := t.TempDir()
		source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
		if err := os.WriteFile(source, []byte(block[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		build := exec.CommandContext(ctx, "go", "build", "-o", binary, source)
		build.Dir = "../.." // files of a command line are of the module around
		if out, err := build.CombinedOutput(); err != nil {
			t.Errorf("program %d: %v\n%s", i, err, out)
			continue
		}
		manifest, err := os.ReadFile("../../examples/hello/vm.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "vm.yaml"), manifest, 0o600); err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(ctx, binary)
		run.Dir, run.WaitDelay = dir, time.Second
		if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "qemu-system-") {
			t.Errorf("program %d: %v\n%s", i, err, out)
		}
	}
}

// serveHTTPSCommand serves the files of the work directory as https://example.com, by a
// proxy whose certificate is trusted: serve-https.
func serveHTTPSCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: serve-https")
	}
	site := httptest.NewTLSServer(http.FileServer(http.Dir(ts.Getenv("WORK")))) // its certificate is for example.com
	ts.Defer(site.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "example.com:443" {
			http.Error(w, "this is a proxy for example.com", http.StatusForbidden)
			return
		}
		near, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer near.Close()
		if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err == nil {
			_ = relayOne(r.Context(), near, "tcp", site.Listener.Addr().String())
		}
	}))
	ts.Defer(proxy.Close)
	authority := filepath.Join(ts.Getenv("WORK"), "authority.pem")
	ts.Check(os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: site.Certificate().Raw}), 0o600))
	ts.Setenv("HTTPS_PROXY", proxy.URL)
	ts.Setenv("SSL_CERT_FILE", authority)
}
