package agent

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Command returns an action that runs a program, without a shell. The user is its only argument;
// there is none for a logout. It fails if the program does, or takes longer than the timeout. The
// program's output goes to log.
func Command(path string, timeout time.Duration, log io.Writer) Action {
	return func(ctx context.Context, user string) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		var args []string
		if user != "" {
			args = []string{user}
		}
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stdout, cmd.Stderr = log, log
		// Processes that the program leaves running may hold the log open.
		cmd.WaitDelay = time.Second
		err := cmd.Run()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
}

// Nothing is an action for a guest in which nothing needs to be done.
func Nothing(context.Context, string) error { return nil }
