package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/vmop/names"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) startCommand() *cli.Command {
	return &cli.Command{
		Name:      "start",
		Usage:     "start a machine, on this host or in a cluster",
		ArgsUsage: "NAME",
		Description: "Starts a machine that was created or run on this host, with what it was given then,\n" +
			"and returns when its guest runs. In a cluster, spec.vm.state becomes Running, or\n" +
			"the operator is asked where spec.runPolicy decides, and it waits until the guest\n" +
			"executes. A machine that runs is no error. Where a volume claim is gone with which the\n" +
			"machine has run (condition BlockDevicesReady, reason ClaimGone), --new-disk says that\n" +
			"a new and empty disk is wanted in its place. Several machines of a cluster are started by\n" +
			"operations (kubectl get vmop).\n\n" +
			"Examples:\n" +
			"  vmop-cli start hello\n" +
			"  vmop-cli start --context lab -n shop web --timeout 5m\n" +
			"  vmop-cli start --cluster -n shop web --new-disk system-disk",
		Flags:  eitherFlags(machineFlags(append(append(append(waitFlags(), startFlags()...), foregroundFlag()), operateFlags()...)...)...),
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

// clusterStart starts a machine of a cluster, with new disks in place of some that are
// gone.
func (p *program) clusterStart(c *cli.Context) error {
	return p.follow(c, spec.StateRunning, string(machinekind.VerbStart), "runs", func(ctx context.Context, client *cluster.Client, namespace, name string) (*spec.VirtualMachine, error) {
		if disks := c.StringSlice("new-disk"); len(disks) > 0 {
			vm, err := client.Machine(ctx, namespace, name)
			if err != nil {
				return nil, err
			}
			value, err := machinekind.NewDisks(vm, disks...)
			if err != nil {
				return nil, err
			}
			if _, err := client.Annotate(ctx, namespace, name, names.AnnotationNewDisk, value); err != nil {
				return nil, err
			}
		}
		return client.Power(ctx, namespace, name, machinekind.VerbStart, unique(), "")
	})
}

func (p *program) start(c *cli.Context) error {
	if inCluster(c) && c.Bool("foreground") {
		return usagef(c, "--foreground is for machines of this host")
	}
	if inCluster(c) {
		if operates(c) {
			return p.operate(c, spec.OperationStart, false)
		}
		return p.clusterStart(c)
	}
	if err := notHere(c); err != nil {
		return err
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
