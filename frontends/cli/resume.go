package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qmp"
)

func (p *program) resumeCommand() *cli.Command {
	return &cli.Command{
		Name:      "resume",
		Usage:     "let a paused machine go on",
		ArgsUsage: "NAME",
		Description: "Lets a guest go on that was paused, that waits because of a disk error, or that has\n" +
			"suspended itself: QEMU does not know of a guest that is suspended to idle, so that a\n" +
			"machine that runs gets the Shift key pressed, which wakes such a guest and does nothing\n" +
			"to others. File systems that are frozen are thawed, as a snapshot leaves them that was\n" +
			"killed in its last moment.\n\n" +
			"Example:\n" +
			"  vmop-cli resume hello",
		Flags:  machineFlags(),
		Action: p.resume,
	}
}

func (p *program) resume(c *cli.Context) error {
	if err := p.control(c, resumeGuest); err != nil {
		return err
	}
	m, err := p.find(c, c.Args().First())
	if err != nil {
		return err
	}
	thawed, err := m.Thaw(c.Context)
	if thawed {
		fmt.Fprintf(p.stdout, "The file systems of %s were frozen, and are thawed.\n", m.FullName())
	}
	return err
}

func resumeGuest(ctx context.Context, c *qmp.Client) (string, error) {
	changed, err := host.ResumeGuest(ctx, c)
	switch {
	case err != nil:
		return "", err
	case !changed:
		return "runs already; if it was suspended to idle, it wakes up", nil
	}
	return "goes on", nil
}
