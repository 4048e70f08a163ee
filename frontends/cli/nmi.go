package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/qmp"
)

func (p *program) nmiCommand() *cli.Command {
	return &cli.Command{
		Name:      "nmi",
		Usage:     "send a non-maskable interrupt to a machine",
		ArgsUsage: "NAME",
		Description: "Gets the attention of a kernel that hangs. What it makes of it is the guest's choice:\n" +
			"Linux reports it, and panics if kernel.unknown_nmi_panic is 1; Windows writes a crash\n" +
			"dump.\n\n" +
			"Example:\n" +
			"  vmop-cli nmi hello",
		Flags: machineFlags(),
		Action: func(c *cli.Context) error {
			return p.control(c, func(ctx context.Context, client *qmp.Client) (string, error) {
				_, err := qmp.Do(ctx, client, qmp.InjectNMI{})
				return "got a non-maskable interrupt", err
			})
		},
	}
}
