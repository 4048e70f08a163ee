package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
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
	changed, err := host.PauseGuest(ctx, c)
	switch {
	case err != nil:
		return "", err
	case !changed:
		return "was paused already", nil
	}
	return "is paused", nil
}
