package cloudinit_test

import (
	"errors"
	"os/exec"
	"testing"
)

// tool runs a program and returns its output. The test fails if the program is
// missing or reports an error.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatalf("%v: install it with: make deps", err)
	}
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
