package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

type viewer struct {
	name string
	// args are its arguments for a connection; nil if it does not support that.
	args func(d displayConnection) []string
}

// askDisplay asks a QEMU for the connection to one of its displays; there is false if it has no
// display of the kind.
type askDisplay func(context.Context, *qmp.Client) (d displayConnection, there bool, err error)

func (p *program) openDisplay(c *cli.Context, kind string, viewers []viewer, pkg string, ask askDisplay) error {
	name, err := oneName(c)
	if err != nil {
		return err
	}
	if err := checkDisplayFlags(c); err != nil {
		return err
	}
	m, err := p.active(c, name)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var d displayConnection
	var there bool
	err = p.askMonitor(ctx, m.Socket(qemucmd.SocketToolMonitor), func(ctx context.Context, client *qmp.Client) (err error) {
		d, there, err = ask(ctx, client)
		if errors.Is(err, qmp.ErrCommandNotFound) { // QEMU was built without it
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%s has no %s display: its manifest has no spec.vm.display.%s", m.FullName(), kind, strings.ToLower(kind))
	}
	return p.showDisplay(ctx, c, d, viewers, pkg)
}

func (p *program) showDisplay(ctx context.Context, c *cli.Context, d displayConnection, viewers []viewer, pkg string) error {
	switch {
	case c.Bool("proxy-only"):
		return p.proxyDisplay(ctx, c, d)
	case c.Bool("print") && forPrograms(c.String("output")):
		return p.printOne(c.String("output"), printedConnection(d))
	case c.Bool("print"):
		fmt.Fprintln(p.stdout, textout.Cell(d.URI))
		return nil
	}
	for _, v := range viewers {
		args := v.args(d)
		if args == nil {
			continue // it does not support this connection
		}
		if path, err := exec.LookPath(v.name); err == nil {
			return p.runViewer(ctx, path, args)
		}
	}
	fmt.Fprintln(p.stdout, textout.Cell(d.URI))
	return fmt.Errorf("no viewer is installed to open this. Debian, Ubuntu and Fedora have %s in the package %s", viewers[0].name, pkg)
}

const viewerGrace = 5 * time.Second

func (p *program) runViewer(ctx context.Context, path string, args []string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = viewerGrace
	cmd.Stdout, cmd.Stderr = p.stderr, p.stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil // as requested
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
