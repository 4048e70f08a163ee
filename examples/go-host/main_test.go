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

// The program has thirty lines, does what it says with a real guest, and leaves
// nothing, also where it fails.
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
	if err != nil || bytes.Count(source, []byte("\n")) > 30 {
		t.Errorf("it has %d lines, %v", bytes.Count(source, []byte("\n")), err)
	}
	run := func(images string) (string, error) {
		c := exec.CommandContext(t.Context(), program, "../hello/vm.yaml", images)
		c.Env = append(os.Environ(), "XDG_DATA_HOME="+data, "XDG_RUNTIME_DIR="+t.TempDir())
		out, err := c.CombinedOutput()
		return string(out), err
	}
	out, err := run(images)
	if want := regexp.MustCompile(`(?m)^.* default/hello: Running: snapshot first of \d disks\n$`); err != nil || !want.MatchString(out) {
		t.Errorf("%v; it printed:\n%s", err, out)
	}
	if out, err := run(t.TempDir()); err == nil || !strings.Contains(out, "has no vmlinuz") {
		t.Errorf("%v; without images it printed:\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "vmop", "machines", "*", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
