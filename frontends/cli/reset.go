package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/qmp"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) resetCommand() *cli.Command {
	return &cli.Command{
		Name:      "reset",
		Usage:     "press the reset button of a machine, on this host or in a cluster",
		ArgsUsage: "NAME",
		Description: "The guest is not asked, and finds its disks as after a power cut. It boots in the same\n" +
			"QEMU: what waits for a restart goes on waiting. A paused machine is resumed. In a\n" +
			"cluster, the operator is asked for it, by an annotation of the machine.\n\n" +
			"Examples:\n" +
			"  vmop-cli reset hello\n" +
			"  vmop-cli reset --cluster web",
		Flags: eitherFlags(machineFlags()...),
		Action: func(c *cli.Context) error {
			if inCluster(c) {
				return p.clusterReset(c)
			}
			return p.control(c, resetMachine)
		},
	}
}

// clusterReset requests a reset. Each value of the annotation is one.
func (p *program) clusterReset(c *cli.Context) error {
	return p.withMachine(c, func(ctx context.Context, client *cluster.Client, vm *spec.VirtualMachine) error {
		full := fullName(vm.Namespace, vm.Name)
		if !spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionRunning) {
			return fmt.Errorf("reset %s: it does not run: %s", full, orUnknown(machinekind.ProgressOf(vm).Waiting))
		}
		if _, err := client.Annotate(ctx, vm.Namespace, vm.Name, names.AnnotationResetRequest, time.Now().UTC().Format(time.RFC3339Nano)); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "%s will be reset.\n", full)
		return nil
	})
}

func resetMachine(ctx context.Context, c *qmp.Client) (string, error) {
	return "was reset", host.ResetGuest(ctx, c)
}
