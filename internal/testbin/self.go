package testbin

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

// Self returns a command that runs this test's binary with a variable, NAME=VALUE, by which
// TestMain runs something else than the tests. If TestMain ignores it, no test runs. The process is
// killed when ctx ends.
func Self(ctx context.Context, tb testing.TB, variable string, args ...string) *exec.Cmd {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	if len(args) == 0 {
		args = []string{"-test.run=^$"}
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), variable)
	return cmd
}
