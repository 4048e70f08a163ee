package main

import (
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
		ArgsUsage: "NAME",
		Description: "Asks the guest to shut down and waits until it has, at most for the manifest's\n" +
			"spec.vm.powerdownTimeout; after that, its runner stops it without its consent. With\n" +
			"--timeout it returns earlier, and the machine goes on shutting down. A machine that\n" +
			"does not run is no error. In a cluster, spec.vm.state becomes Stopped, or the operator is\n" +
			"asked where spec.runPolicy decides, and it does the same. There, --force does not wait for the guest, or with\n" +
			"--timeout only so long, also where the machine is being stopped or deleted\n" +
			"already: QEMU writes back what it has and ends. Several machines of a cluster are stopped by\n" +
			"operations (kubectl get vmop).\n\n" +
			"Examples:\n" +
			"  vmop-cli stop hello\n" +
			"  vmop-cli stop hello --timeout 2m --force\n" +
			"  vmop-cli stop hello --now\n" +
			"  vmop-cli stop --context lab -n shop web\n" +
			"  vmop-cli stop --cluster web --force",
		Flags: eitherFlags(machineFlags(append(hostStopFlags(),
			append(operateFlags(), &cli.BoolFlag{Name: "no-wait", Usage: "only ask for it; in a cluster only", DisableDefaultText: true})...,
		)...)...),
		Action: p.stop,
	}
}

func (p *program) stop(c *cli.Context) error {
	if inCluster(c) {
		if operates(c) {
			return p.operate(c, spec.OperationStop, c.Bool("force") || c.Bool("now"))
		}
		return p.clusterStop(c)
	}
	if err := notHere(c); err != nil {
		return err
	}
	if c.Bool("no-wait") {
		return usagef(c, "--no-wait is for a cluster (--cluster, --context or --kubeconfig)")
	}
	name, err := oneName(c)
	if err != nil {
		return err
	}
	m, err := p.find(c, name)
	if err != nil {
		return err
	}
	return p.stopHere(c, &m)
}

// hostStopFlags say how a machine of this host is stopped.
func hostStopFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "timeout", Usage: "wait at most this `DURATION`, as in 5m", DefaultText: "as long as the machine may take"},
		&cli.BoolFlag{Name: "force", Usage: "stop it as --now does if it has not stopped within --timeout", DisableDefaultText: true},
		&cli.BoolFlag{Name: "now", Usage: "do not wait for the guest: it finds its disks as after a power cut", DisableDefaultText: true},
	}
}

// stopHere stops a machine of this host.
func (p *program) stopHere(c *cli.Context, m *host.Machine) error {
	if c.Duration("timeout") < 0 {
		return usagef(c, "--timeout %v: want 0 or more", c.Duration("timeout"))
	}
	full := m.FullName()
	if !m.Running() {
		fmt.Fprintf(p.stdout, "%s is not running.\n", full)
		return nil
	}
	ctx, cancel := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	g := p.begin(full + ": shutting down")
	err := m.Stop(ctx, host.StopOptions{Now: c.Bool("now"), Timeout: c.Duration("timeout"), Force: c.Bool("force")})
	g.end()
	if err != nil {
		if !c.Bool("now") {
			err = fmt.Errorf("%w; to end it without the guest's consent: vmop-cli stop --now %s", err, p.again(c, full))
		}
		return fmt.Errorf("stop %s: %w", full, err)
	}
	fmt.Fprintf(p.stdout, "%s has stopped.\n", full)
	if c.Bool("now") {
		return nil
	}
	if state, err := runner.ReadState(m.StateFile()); err == nil && state.Outcome != nil && !state.Outcome.Orderly {
		return &exitStatus{code: runner.ExitForced, err: fmt.Errorf("%s: %s; its disks are as after a power cut", full, state.Outcome.Message)}
	}
	return nil
}
