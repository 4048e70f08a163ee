package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/vmop/spec"
)

const requestTimeout = 30 * time.Second

func (p *program) connect(c *cli.Context) (*cluster.Client, error) {
	return cluster.Connect(cluster.Options{
		Kubeconfig: c.String("kubeconfig"), Context: c.String("context"), Namespace: c.String("namespace"),
		Warn: func(text string) { p.note("Warning: %s", text) },
	})
}

func (p *program) clusterMachine(c *cli.Context) (client *cluster.Client, namespace, name string, err error) {
	arg, err := oneName(c)
	if err != nil {
		return nil, "", "", err
	}
	if client, err = p.connect(c); err != nil {
		if m, merr := p.find(c, arg); errors.Is(err, cluster.ErrNoCluster) && merr == nil {
			err = fmt.Errorf("%s is a machine of this host, and %s is for those of a cluster", m.FullName(), c.Command.Name)
		}
		return nil, "", "", err
	}
	namespace, name = client.Namespace, arg
	if n, rest, ok := strings.Cut(arg, "/"); ok {
		if given := c.String("namespace"); given != "" && given != n {
			return nil, "", "", usagef(c, "--namespace %s and %s: want one namespace", given, arg)
		}
		namespace, name = n, rest
	}
	return client, namespace, name, nil
}

// bounded returns a context that ends on a termination signal, and after a timeout unless it is 0.
func bounded(c *cli.Context, timeout time.Duration, what string) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if timeout <= 0 {
		return ctx, stop
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%s after %v", what, timeout))
	return ctx, func() { cancel(); stop() }
}

func (p *program) withMachine(c *cli.Context, do func(context.Context, *cluster.Client, *spec.VirtualMachine) error) error {
	client, namespace, name, err := p.clusterMachine(c)
	if err != nil {
		return err
	}
	ctx, cancel := bounded(c, requestTimeout, "the API server did not answer")
	defer cancel()
	vm, err := client.Machine(ctx, namespace, name)
	if err != nil {
		return err
	}
	return do(ctx, client, vm)
}

var errTimeout = errors.New("it takes too long")

const startReserve = 10 * time.Minute

func unique() string { return time.Now().UTC().Format(time.RFC3339Nano) }

func powerText(vm *spec.VirtualMachine) string {
	state := spec.StateStopped
	if vm.ShouldRun() {
		state = spec.StateRunning
	}
	reason := spec.PowerPolicy
	if p := vm.Status.Power; p != nil {
		reason = p.Reason
	}
	return fmt.Sprintf("%s (%s; run policy %s)", state, reason, vm.Spec.RunPolicy)
}

func orUnknown(waiting string) string {
	if waiting == "" {
		return "no reason is known"
	}
	return waiting
}
