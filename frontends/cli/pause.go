package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/qmp"
)

func (p *program) pauseCommand() *cli.Command {
	return &cli.Command{
		Name:      "pause",
		Usage:     "stop the processors of a machine",
		ArgsUsage: "NAME",
		Description: "The guest stands still until vmop-cli resume, and is not told: its memory stays taken,\n" +
			"its connections wait. A machine that is paused already is no error.\n\n" +
			"Example:\n" +
			"  vmop-cli pause hello",
		Flags:  machineFlags(),
		Action: func(c *cli.Context) error { return p.control(c, pauseGuest) },
	}
}

func pauseGuest(ctx context.Context, c *qmp.Client) (string, error) {
	before, err := qmp.Do(ctx, c, qmp.QueryStatus{})
	if err != nil {
		return "", err
	}
	if before.Status == qmp.RunStatePaused {
		return "was paused already", nil
	}
	if _, err := qmp.Do(ctx, c, qmp.Stop{}); err != nil {
		return "", err
	}
	// QEMU agrees to stop what does not run, and does nothing.
	after, err := qmp.Do(ctx, c, qmp.QueryStatus{})
	if err != nil {
		return "", err
	}
	if after.Status != qmp.RunStatePaused {
		return "", fmt.Errorf("the guest cannot be paused: QEMU's run state is %s", after.Status)
	}
	return "is paused", nil
}

// paused says whether the processors of a machine that was started stand still
// until somebody resumes it.
func paused(s qmp.RunState) bool {
	return s == qmp.RunStatePaused || s == qmp.RunStateIOError
}
