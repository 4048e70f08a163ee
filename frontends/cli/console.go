package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/serial"
)

func (p *program) consoleCommand() *cli.Command {
	return &cli.Command{
		Name:      "console",
		Usage:     "connect to the serial console of a machine that runs",
		ArgsUsage: "NAME",
		Description: "Shows the last 64 KiB of the console's output and what comes, and passes on what is\n" +
			"typed, Ctrl-C included. Ctrl-] ends the view; the machine goes on. Any number of\n" +
			"views may be open. Where the standard input is no terminal, it is typed as it is, and\n" +
			"the view goes on behind its end until the machine ends.\n\n" +
			"Example:\n" +
			"  vmop-cli console hello",
		Flags:  machineFlags(),
		Action: p.console,
	}
}

func (p *program) console(c *cli.Context) error {
	m, err := p.findOne(c)
	if err != nil {
		return err
	}
	full := m.FullName()
	switch {
	case m.Status == host.StatusOrphaned:
		return fmt.Errorf("%s: its runner was killed, and with it the console", full)
	case m.Runner == 0:
		return fmt.Errorf("%s is not running (%s)", full, m.Status)
	case (m.Status == host.StatusRunning || m.Status == host.StatusPaused) && m.State.Socket(qemucmd.SocketConsole) == "":
		return fmt.Errorf("%s has no serial console: spec.vm.serial.enabled is false", full)
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	conn, err := m.Console(ctx)
	if err != nil {
		return err
	}
	v := &serial.View{Conn: conn, Stdin: p.stdin, Stdout: p.stdout}
	if p.interactive() {
		p.note("Console of %s. Ctrl-] ends the view.", full)
		raw, err := serial.MakeRaw(p.stdin)
		if err != nil {
			return errors.Join(err, conn.Close())
		}
		defer raw.Restore()
		v.Keys = true
		end, err := v.Run(ctx)
		raw.Restore()
		fmt.Fprintln(p.stderr)
		if err != nil {
			return err
		}
		if end == serial.Detached {
			p.note("%s goes on.", full)
			return nil
		}
		p.note("%s has ended.", full)
		return nil
	}
	_, err = v.Run(ctx)
	return err
}
