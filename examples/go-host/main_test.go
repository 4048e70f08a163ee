package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
)

// What the program does are thirty lines, it does what it says with a real guest, and
// leaves nothing, also where it fails, which it tells without a stack.
func TestMachineOfAProgram(t *testing.T) {
	guest, err := tinyguest.Ensure(t.Context(), tinyguest.Options{CacheDir: os.Getenv("VMOP_CACHE")})
	if err != nil {
		t.Fatalf("%v: install what is missing with: make deps", err)
	}
	images, data := t.TempDir(), t.TempDir()
	for name, file := range map[string]string{"vmlinuz": guest.Kernel, "initrd": guest.Initrd} {
		if err := os.Symlink(file, filepath.Join(images, name)); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(t.TempDir(), "go-host")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	source, err := os.ReadFile("main.go")
	_, code, _ := bytes.Cut(source, []byte("\nfunc run("))
	if lines := bytes.Count(code, []byte("\n")); err != nil || lines == 0 || lines > 30 {
		t.Errorf("it has %d lines, %v", lines, err)
	}
	run := func(arguments ...string) (string, error) {
		c := exec.CommandContext(t.Context(), program, arguments...)
		c.Env = append(os.Environ(), "XDG_DATA_HOME="+data, "XDG_RUNTIME_DIR="+t.TempDir())
		out, err := c.CombinedOutput()
		return string(out), err
	}
	out, err := run("../hello/vm.yaml", images)
	if want := regexp.MustCompile(`(?m)^.* default/hello: Running: snapshot first of \d disks\n$`); err != nil || !want.MatchString(out) {
		t.Errorf("%v; it printed:\n%s", err, out)
	}
	for _, f := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"../hello/vm.yaml", t.TempDir()}, "has no vmlinuz"},
		{[]string{"nosuch.yaml", images}, "nosuch.yaml: no such file"},
		{nil, "usage: go-host MANIFEST IMAGES"},
	} {
		if out, err := run(f.arguments...); err == nil || !strings.Contains(out, f.want) || strings.Contains(out, "goroutine") {
			t.Errorf("%v: %v; it printed:\n%s", f.arguments, err, out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(data, "vmop", "machines", "*", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
