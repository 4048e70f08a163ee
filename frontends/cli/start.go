package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) startCommand() *cli.Command {
	return &cli.Command{
		Name:      "start",
		Usage:     "start a machine, on this host or in a cluster",
		ArgsUsage: "NAME...",
		Description: "Starts a machine that was created or run on this host, with what it was given then,\n" +
			"and returns when its guest runs. One that systemd starts with this host (vmop-cli enable)\n" +
			"is started by its service. In a cluster, an operation starts it (kubectl get vmop),\n" +
			"which is waited for; the exit code is 1 if it fails, and a wait that is ended, as by\n" +
			"Ctrl-C, ends nothing else. A machine that runs is no error. Where a volume claim is gone\n" +
			"with which the machine has run (condition BlockDevicesReady), --new-disk says that a new and\n" +
			"empty disk is wanted in its place. Where there are no operations, or no right to make one, the\n" +
			"machine itself is told: by spec.vm.state, or by an annotation where spec.runPolicy decides.\n\n" +
			"Examples:\n" +
			"  vmop-cli start hello\n" +
			"  vmop-cli start --context lab -n shop web --timeout 5m\n" +
			"  vmop-cli start --cluster -n shop web db\n" +
			"  vmop-cli start --cluster -n shop --all --dry-run\n" +
			"  vmop-cli start --cluster -n shop web --new-disk system-disk",
		Flags:  eitherFlags(machineFlags(append(append(startFlags(), timeoutFlag(), foregroundFlag(), stoppedExitFlag()), operateFlags()...)...)...),
		Action: p.start,
	}
}

func timeoutFlag() cli.Flag {
	return &cli.DurationFlag{Name: "timeout", Usage: "wait at most this `DURATION`, as in 5m", DefaultText: "as long as the machine may take"}
}

// foregroundFlag is for a service manager.
func foregroundFlag() cli.Flag {
	return &cli.BoolFlag{Name: "foreground", Usage: "run the machine in this process until it ends, as a service manager wants it; TERM shuts it down. The exit codes are those of run", DisableDefaultText: true}
}

// stoppedExitFlag is for units of systemd, which must not restart what the user has stopped.
func stoppedExitFlag() cli.Flag {
	return &cli.IntFlag{Name: "stopped-exit", Usage: "with --foreground, exit with this `CODE` if the machine was asked to stop and has", DefaultText: "0"}
}

// startFlags are for commands that start a machine by its name: their values are stored.
func startFlags() []cli.Flag {
	var out []cli.Flag
	for _, f := range localFlags() {
		if f.Names()[0] != "data-dir" {
			out = append(out, f)
		}
	}
	return append(out, verboseFlag())
}

func (p *program) start(c *cli.Context) error {
	if inCluster(c) && c.Bool("foreground") {
		return usagef(c, "--foreground is for machines of this host")
	}
	if inCluster(c) {
		return p.operate(c, spec.OperationStart)
	}
	if err := notHere(c); err != nil {
		return err
	}
	if c.IsSet("timeout") {
		return usagef(c, "--timeout is for a cluster (--cluster, --context or --kubeconfig)")
	}
	m, err := p.findOne(c)
	if err != nil {
		return err
	}
	if m.Runner != 0 && c.Bool("foreground") {
		return fmt.Errorf("%s runs already (process %d)", m.FullName(), m.Runner)
	}
	if m.Runner != 0 {
		fmt.Fprintf(p.stdout, "%s runs already.\n", m.FullName())
		return nil
	}
	if m.Busy != nil {
		return fmt.Errorf("start %s: %w: %w", m.FullName(), host.ErrBusy, m.Busy)
	}
	return p.startHere(c, m)
}

func (p *program) startHere(c *cli.Context, m host.Machine) error {
	o, err := p.keptManifest(c, m)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	j, err := p.prepare(ctx, c, &o)
	if err != nil {
		return err
	}
	if c.Bool("foreground") {
		j.Interrupted = interruptedBefore(ctx, stop)
		outcome, err := j.Supervise(c.Context, p.stderr)
		if err != nil && outcome.ExitCode() != exitOK {
			return &exitStatus{code: outcome.ExitCode(), err: err}
		}
		if code := c.Int("stopped-exit"); err == nil && outcome.Cause == runner.CauseRequested && code != exitOK {
			return &exitStatus{code: code}
		}
		return err
	}
	return p.detachOrDiscard(ctx, c, j)
}

func (p *program) keptManifest(c *cli.Context, m host.Machine) (spec.Object, error) {
	o, err := m.Object()
	if errors.Is(err, host.ErrNoManifest) {
		return o, fmt.Errorf("%w: run it once with %s", err, p.hint(c, "run", "FILE"))
	}
	return o, err
}
