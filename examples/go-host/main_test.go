package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
)

// The program does what it says with a real guest, which is shut down rather than
// killed, and leaves nothing.
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
	c := exec.CommandContext(t.Context(), program, "../hello/vm.yaml", images)
	c.Env = append(os.Environ(), "XDG_DATA_HOME="+data, "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := regexp.MustCompile(`(?m)^default/hello: Running: snapshot first of \d disks\ndefault/hello: Stopped: the guest shut down.*$`); !want.Match(out) {
		t.Errorf("it printed:\n%s", out)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "vmop", "machines", "*", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
