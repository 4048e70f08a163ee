package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const (
	// monitorGreeting bounds the wait for a monitor's greeting, which comes at
	// once unless another client has the monitor.
	monitorGreeting = 5 * time.Second
	// monitorDeadline bounds all that a monitor is asked.
	monitorDeadline = 30 * time.Second
)

// askMonitor connects to a QEMU's monitor and asks it something.
func (p *program) askMonitor(ctx context.Context, socket string, ask func(context.Context, *qmp.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, monitorDeadline)
	defer cancel()
	g := p.begin("waiting for QEMU's monitor")
	defer g.end()
	client, err := qmp.Dial(ctx, socket, qmp.Options{Handshake: monitorGreeting})
	switch {
	case errors.Is(err, qmp.ErrNoGreeting):
		return fmt.Errorf("%s: QEMU's monitor does not answer: it serves one client at a time, and another one seems to be connected", socket)
	case err != nil:
		return fmt.Errorf("%s: %w", socket, err)
	}
	err = ask(ctx, client)
	if err = errors.Join(err, client.Close()); err != nil {
		return fmt.Errorf("%s: %w", socket, err)
	}
	return nil
}

// active is the machine that a command's NAME means, whose QEMU must be there.
func (p *program) active(c *cli.Context, name string) (machine, error) {
	m, err := p.find(c, name)
	if err != nil {
		return m, err
	}
	full := fullName(m.Namespace, m.Name)
	switch {
	case !m.running():
		return m, fmt.Errorf("%s is not running (%s)", full, m.Status)
	case m.Status == status(runner.PhaseInitializing) || m.Status == status(runner.PhaseStarting):
		return m, fmt.Errorf("%s is only just being started", full)
	}
	return m, nil
}

// socket is the path of a socket in the machine's runtime directory.
func (m *machine) socket(name string) string {
	dir := m.State.RuntimeDir
	if dir == "" {
		dir = m.runtime
	}
	return filepath.Join(dir, name)
}

// control asks the monitor of the machine that the command's only argument
// names, and tells what has become of it.
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
	full := fullName(m.Namespace, m.Name)
	var became string
	err = p.askMonitor(ctx, m.socket(runnerconfig.ToolSocket), func(ctx context.Context, client *qmp.Client) (err error) {
		became, err = ask(ctx, client)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", c.Command.Name, full, err)
	}
	fmt.Fprintf(p.stdout, "%s %s.\n", full, became)
	return nil
}
