package testbin

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

// Self is the binary of this test as another process, which its TestMain makes something else
// than a run of tests because of a variable, NAME=VALUE. It runs no test should that forget to. It
// is killed when ctx ends.
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
