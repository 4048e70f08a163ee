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

func (p *program) stopCommand() *cli.Command {
	return &cli.Command{
		Name:      "stop",
		Usage:     "shut a machine down, on this host or in a cluster",
		ArgsUsage: "NAME...",
		Description: "Asks the guest to shut down and waits until it has, at most for the manifest's\n" +
			"spec.vm.powerdownTimeout; after that, its runner stops it without its consent. With\n" +
			"--timeout it returns earlier, and the machine goes on shutting down. A machine that\n" +
			"does not run is no error. In a cluster, an operation stops it (kubectl get vmop), which is\n" +
			"waited for; the exit code is 1 if it fails, and a wait that is ended, as by Ctrl-C, ends\n" +
			"nothing else. There, --force does not wait for the guest, or with --timeout only so long,\n" +
			"also where the machine is being stopped or deleted already: QEMU writes back what it has\n" +
			"and ends. Where there are no operations, or no right to make one, the machine itself is\n" +
			"told: by spec.vm.state, or by an annotation where spec.runPolicy decides.\n\n" +
			"Examples:\n" +
			"  vmop-cli stop hello\n" +
			"  vmop-cli stop hello --timeout 2m --force\n" +
			"  vmop-cli stop hello --now\n" +
			"  vmop-cli stop --context lab -n shop web\n" +
			"  vmop-cli stop --cluster web --force\n" +
			"  vmop-cli stop --cluster -n shop -l tier=web --yes",
		Flags:  eitherFlags(machineFlags(append(hostStopFlags(), operateFlags()...)...)...),
		Action: p.stop,
	}
}

func (p *program) stop(c *cli.Context) error {
	if inCluster(c) {
		return p.operate(c, spec.OperationStop)
	}
	if err := notHere(c); err != nil {
		return err
	}
	m, err := p.findOne(c)
	if err != nil {
		return err
	}
	return p.stopHere(c, m)
}

func hostStopFlags() []cli.Flag {
	return []cli.Flag{
		timeoutFlag(),
		&cli.BoolFlag{Name: "force", Usage: "stop it as --now does if it has not stopped within --timeout", DisableDefaultText: true},
		&cli.BoolFlag{Name: "now", Usage: "do not wait for the guest: it finds its disks as after a power cut", DisableDefaultText: true},
	}
}

func (p *program) stopHere(c *cli.Context, m host.Machine) error {
	if c.Duration("timeout") < 0 {
		return usagef(c, "--timeout %v: want 0 or more", c.Duration("timeout"))
	}
	h, err := p.host(c)
	if err != nil {
		return err
	}
	full, ran := m.FullName(), m.Running()
	ctx, cancel := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	g := p.begin(full + ": shutting down")
	_, err = h.Stop(ctx, m, host.StopOptions{Now: c.Bool("now"), Timeout: c.Duration("timeout"), Force: c.Bool("force")})
	g.end()
	if err != nil {
		if restart := c.Command.Name == "restart"; !c.Bool("now") {
			if restart && errors.Is(err, host.ErrStillRuns) {
				err = fmt.Errorf("%w, and is not started again when it has shut down", err)
			}
			err = fmt.Errorf("%w; to end it without the guest's consent: %s", err, p.hint(c, c.Command.Name, "--now", full))
		}
		return fmt.Errorf("stop %s: %w", full, err)
	}
	if !ran {
		fmt.Fprintf(p.stdout, "%s is not running.\n", full)
		return nil
	}
	fmt.Fprintf(p.stdout, "%s has stopped.\n", full)
	if c.Bool("now") {
		return nil
	}
	if state, err := runner.ReadState(m.StateFile()); err == nil && state.Outcome != nil && !state.Outcome.Orderly {
		return &exitStatus{code: exitForced, err: fmt.Errorf("%s: %s; its disks are as after a power cut", full, state.Outcome.Message)}
	}
	return nil
}
