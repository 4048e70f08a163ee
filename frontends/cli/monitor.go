package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
)

const (
	monitorDeadline = 30 * time.Second
	statusDeadline  = 5 * time.Second
)

func (p *program) askMonitor(ctx context.Context, socket string, ask func(context.Context, *qmp.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, monitorDeadline)
	defer cancel()
	g := p.begin("waiting for QEMU's monitor")
	defer g.end()
	return host.AskMonitor(ctx, socket, func(client *qmp.Client) error { return ask(ctx, client) })
}

// active returns the machine of a command's NAME, whose QEMU must run.
func (p *program) active(c *cli.Context, name string) (host.Machine, error) {
	m, err := p.find(c, name)
	if err != nil {
		return m, err
	}
	full := m.FullName()
	switch {
	case !m.Running():
		return m, fmt.Errorf("%s is not running (%s)", full, m.Status)
	case m.Status == host.Status(runner.PhaseInitializing) || m.Status == host.Status(runner.PhaseStarting):
		return m, fmt.Errorf("%s is only just being started", full)
	}
	return m, nil
}

// control calls ask with the monitor of the machine that the command's only argument names, and
// prints the result.
func (p *program) control(c *cli.Context, ask func(context.Context, *qmp.Client) (became string, err error)) error {
	name, err := oneName(c)
	if err != nil {
		return err
	}
	m, err := p.active(c, name)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	full := m.FullName()
	var became string
	err = p.askMonitor(ctx, m.Socket(qemucmd.SocketToolMonitor), func(ctx context.Context, client *qmp.Client) (err error) {
		became, err = ask(ctx, client)
		return err
	})
	if err != nil {
		if why := m.Message(); m.Status == host.StatusPaused && why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return fmt.Errorf("%s %s: %w", c.Command.Name, full, err)
	}
	if want := statusAfter[c.Command.Name]; want != "" && m.Runner != 0 {
		if err := p.awaitStatus(ctx, c, m, want); err != nil {
			return fmt.Errorf("%s %s: %w", c.Command.Name, full, err)
		}
	}
	fmt.Fprintf(p.stdout, "%s %s.\n", full, became)
	return nil
}

// statusAfter is the status of a machine after a command: the user's next command must see it.
var statusAfter = map[string]host.Status{"pause": host.StatusPaused, "resume": host.StatusRunning}

// awaitStatus waits until a machine's runner has reported a status. A timeout or another status is
// not an error of the command.
func (p *program) awaitStatus(ctx context.Context, c *cli.Context, m host.Machine, want host.Status) error {
	h, err := p.host(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statusDeadline)
	defer cancel()
	_, err = h.Wait(ctx, m, func(now *host.Machine) (bool, error) { return now.Status == want || !now.Running(), nil })
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
