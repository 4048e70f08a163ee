package version

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the linker is told is what a program says. The recipes and the Makefile name
// the variable.
func TestStampedVersion(t *testing.T) {
	program := filepath.Join(t.TempDir(), "vmop-runner")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-X github.com/vmop/sdk/internal/version.stamped=v1.2.3", "-o", program, "../../frontends/runner")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program, "-version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v1.2.3") {
		t.Errorf("%v: %s", err, out)
	}
	if stamped == "" && String() == "" {
		t.Error("a program without a version")
	}
}
