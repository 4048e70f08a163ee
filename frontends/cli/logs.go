package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/frontends/cli/cluster"
)

func (p *program) logsCommand() *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "print what the runner of a cluster's machine says",
		ArgsUsage: "NAME",
		Description: "Prints the log of the machine's pod. It ends with the pod: what an earlier one said\n" +
			"is gone, but why it ended is in vmop-cli inspect and events.\n\n" +
			"Examples:\n" +
			"  vmop-cli logs web\n" +
			"  vmop-cli logs web --follow --tail 20",
		Flags: clusterFlags(
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the runner ends", DisableDefaultText: true},
			&cli.IntFlag{Name: "tail", Value: -1, Usage: "only the last `LINES`; -1 is all"},
			&cli.DurationFlag{Name: "since", Usage: "only what is younger than this `DURATION`, as in 10m"},
		),
		Action: p.logs,
	}
}

func (p *program) logs(c *cli.Context) error {
	if since := c.Duration("since"); since < 0 {
		return usagef(c, "--since %v: want a time before now", since)
	}
	client, namespace, name, err := p.clusterMachine(c)
	if err != nil {
		return err
	}
	timeout := requestTimeout
	if c.Bool("follow") {
		timeout = 0
	}
	ctx, cancel := bounded(c, timeout, "the API server did not answer")
	defer cancel()
	err = client.Log(ctx, namespace, name, cluster.LogOptions{Follow: c.Bool("follow"), Tail: c.Int("tail"), Since: c.Duration("since")}, p.stdout)
	if !errors.Is(err, cluster.ErrNoPod) {
		return err
	}
	// A name that is wrong has another answer than a machine that is stopped.
	ctx, cancelSecond := bounded(c, requestTimeout, "the API server did not answer")
	defer cancelSecond()
	if _, merr := client.Machine(ctx, namespace, name); merr != nil {
		return merr
	}
	return err
}
