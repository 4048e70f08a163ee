package main

import (
	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) startCommand() *cli.Command {
	return &cli.Command{
		Name:      "start",
		Usage:     "start a machine of a cluster",
		ArgsUsage: "NAME",
		Description: "Sets spec.vm.state to Running and waits until the guest executes, telling what it\n" +
			"waits for. A machine that runs is no error. On one host, machines are started with\n" +
			"run.\n\n" +
			"Examples:\n" +
			"  vmop-cli start web\n" +
			"  vmop-cli start --context lab -n shop web --timeout 5m",
		Flags:  clusterFlags(waitFlags()...),
		Action: func(c *cli.Context) error { return p.setState(c, spec.StateRunning, "start", "runs") },
	}
}
