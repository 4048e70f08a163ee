package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
)

func (p *program) startCommand() *cli.Command {
	return &cli.Command{
		Name:      "start",
		Usage:     "start a machine, on this host or in a cluster",
		ArgsUsage: "NAME",
		Description: "Starts a machine that was created or run on this host, with what it was given then,\n" +
			"and returns when its guest runs. In a cluster, spec.vm.state becomes Running, or\n" +
			"the operator is asked where spec.runPolicy decides, and it waits until the guest\n" +
			"executes. A machine that runs is no error.\n\n" +
			"Examples:\n" +
			"  vmop-cli start hello\n" +
			"  vmop-cli start --context lab -n shop web --timeout 5m",
		Flags:  eitherFlags(machineFlags(append(append(waitFlags(), startFlags()...), foregroundFlag())...)...),
		Action: p.start,
	}
}

// foregroundFlag is for a service manager.
func foregroundFlag() cli.Flag {
	return &cli.BoolFlag{Name: "foreground", Usage: "run the machine in this process until it ends, as a service manager wants it; TERM shuts it down. The exit codes are those of run", DisableDefaultText: true}
}

// startFlags are those of commands that start a machine by its name: what it is
// given now is remembered.
func startFlags() []cli.Flag {
	var out []cli.Flag
	for _, f := range localFlags() {
		if f.Names()[0] != "data-dir" {
			out = append(out, f)
		}
	}
	return out
}

func (p *program) start(c *cli.Context) error {
	if inCluster(c) && c.Bool("foreground") {
		return usagef(c, "--foreground is for machines of this host")
	}
	if inCluster(c) {
		return p.power(c, machinekind.VerbStart, "runs")
	}
	if c.Bool("no-wait") || c.IsSet("timeout") {
		return usagef(c, "--no-wait and --timeout are for a cluster (--cluster, --context or --kubeconfig)")
	}
	name, err := oneName(c)
	if err != nil {
		return err
	}
	m, err := p.find(c, name)
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
	return p.startHere(c, m)
}
