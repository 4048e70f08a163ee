package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/qmp"
)

func (p *program) resetCommand() *cli.Command {
	return &cli.Command{
		Name:      "reset",
		Usage:     "press the reset button of a machine",
		ArgsUsage: "NAME",
		Description: "The guest is not asked, and finds its disks as after a power cut. It boots in the same\n" +
			"QEMU: what waits for a restart goes on waiting. A paused machine is resumed.\n\n" +
			"Example:\n" +
			"  vmop-cli reset hello",
		Flags:  machineFlags(),
		Action: func(c *cli.Context) error { return p.control(c, resetMachine) },
	}
}

func resetMachine(ctx context.Context, c *qmp.Client) (string, error) {
	events := c.Subscribe(8, qmp.ResetEvent{}.QMPEvent())
	defer events.Close()
	if _, err := qmp.Do(ctx, c, qmp.SystemReset{}); err != nil {
		return "", err
	}
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return "", fmt.Errorf("wait for the reset: %w", err)
		}
		if reset, err := qmp.DecodeEvent[qmp.ResetEvent](e); err != nil {
			return "", err
		} else if !reset.Guest {
			break // and not one of the guest's own at the same time
		}
	}
	// After a reset, QEMU leaves the processors as they were.
	if _, err := qmp.Do(ctx, c, qmp.Cont{}); err != nil {
		return "", err
	}
	return "was reset", nil
}
