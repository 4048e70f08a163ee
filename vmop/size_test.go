package vmop_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program that renders without templates of its own does not carry text/template:
// its reflection keeps the linker from leaving out what nobody calls, megabytes of
// Kubernetes' types.
func TestRenderWithoutTemplatesIsSmall(t *testing.T) {
	program := filepath.Join(t.TempDir(), "go-render")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../examples/go-render").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "go", "tool", "nm", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	symbols := string(out)
	if !strings.Contains(symbols, "vmop.Render") {
		t.Fatal("the program does not render")
	}
	if strings.Contains(symbols, "text/template.(*Template).Execute") {
		t.Error("the program executes templates")
	}
	if s, err := os.Stat(program); err == nil {
		t.Logf("%d bytes", s.Size())
	}
}
