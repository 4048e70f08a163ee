package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
)

var waitConditions = map[string]host.Condition{
	"running": host.ForRunning, "ready": host.ForReady, "stopped": host.ForStopped,
}

func (p *program) waitCommand() *cli.Command {
	return &cli.Command{
		Name:      "wait",
		Usage:     "wait until a machine of this host runs, is ready or has stopped",
		ArgsUsage: "NAME",
		Description: "running is when the guest executes, ready when its guest agent has answered, which\n" +
			"needs the agent in the guest, and stopped when no process has the machine. For a\n" +
			"cluster, use kubectl wait. With -o json or yaml it prints the machine as it is then.\n\n" +
			"Examples:\n" +
			"  vmop-cli wait hello --for=running\n" +
			"  vmop-cli wait hello --for=stopped --timeout 5m\n" +
			"  vmop-cli wait hello --for=stopped -o json",
		Flags: machineFlags(
			&cli.StringFlag{Name: "for", Value: "running", Usage: "`WHAT`: running, ready or stopped"},
			&cli.DurationFlag{Name: "timeout", Usage: "wait at most this `DURATION`, as in 5m; without it, as long as it takes", DefaultText: "none"},
			outputFlag("", formatText),
		),
		Action: p.wait,
	}
}

func (p *program) wait(c *cli.Context) error {
	format, err := outputFormat(c, formatText)
	if err != nil {
		return err
	}
	condition, ok := waitConditions[c.String("for")]
	if !ok {
		return usagef(c, "--for %q: want running, ready or stopped", c.String("for"))
	}
	if c.Duration("timeout") < 0 {
		return usagef(c, "--timeout %v: want 0 or more", c.Duration("timeout"))
	}
	m, err := p.findOne(c)
	if err != nil {
		return err
	}
	h, err := p.host(c)
	if err != nil {
		return err
	}
	ctx, cancel := bounded(c, c.Duration("timeout"), "it is not "+c.String("for"))
	defer cancel()
	started := time.Now()
	g := p.begin(fmt.Sprintf("%s: waiting until it is %s", m.FullName(), c.String("for")))
	now, err := h.Wait(ctx, m, condition)
	g.end()
	if err != nil {
		if now.Message() != "" && !errors.Is(err, c.Context.Err()) {
			err = fmt.Errorf("%w (%s: %s)", err, now.Status, now.Message())
		}
		return fmt.Errorf("wait for %s: %w", m.FullName(), err)
	}
	if forPrograms(format) {
		out := p.printedHere(h, &now)
		return p.printOne(format, &out)
	}
	fmt.Fprintf(p.stdout, "%s is %s (after %v).\n", m.FullName(), c.String("for"), time.Since(started).Round(100*time.Millisecond))
	return nil
}
