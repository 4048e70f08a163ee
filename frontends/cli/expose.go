package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) exposeCommand() *cli.Command {
	return &cli.Command{
		Name:      "expose",
		Usage:     "offer a port of a machine of a cluster by a Service",
		ArgsUsage: "NAME",
		Description: "Makes a Service that leads to the machine's pod, whichever that is at a time: it may be\n" +
			"made before the machine starts, and serves it again after each restart. The target is\n" +
			"a port of the pod, which spec.vm.networks[].user.hostForwards leads to the guest; what is\n" +
			"missing there is told. It is deleted by kubectl delete service, and not with the machine.\n\n" +
			"Examples:\n" +
			"  vmop-cli expose web --port 80\n" +
			"  vmop-cli expose -n shop web --port 22 --target-port 2222 --type LoadBalancer --service web-ssh",
		Flags: clusterFlags(
			&cli.IntFlag{Name: "port", Usage: "`PORT` of the Service, which must be given", DefaultText: "none"},
			&cli.IntFlag{Name: "target-port", Usage: "`PORT` of the machine's pod", DefaultText: "that of --port"},
			&cli.StringFlag{Name: "type", Value: string(corev1.ServiceTypeClusterIP), Usage: "`TYPE` of the Service: ClusterIP, NodePort or LoadBalancer"},
			&cli.StringFlag{Name: "protocol", Value: string(corev1.ProtocolTCP), Usage: "`PROTOCOL`: TCP or UDP"},
			&cli.StringFlag{Name: "service", Usage: "`NAME` of the Service", DefaultText: "the machine's, a hyphen and the port"},
			&cli.BoolFlag{Name: "dry-run", Usage: "have the API server check it, and make nothing", DisableDefaultText: true},
		),
		Action: p.expose,
	}
}

func (p *program) expose(c *cli.Context) error {
	e := cluster.Exposure{
		Name: c.String("service"), Port: int32(c.Int("port")), Target: int32(c.Int("target-port")),
		Protocol: corev1.Protocol(c.String("protocol")), Type: corev1.ServiceType(c.String("type")),
	}
	switch {
	case c.Int("port") < 1 || c.Int("port") > 65535:
		return usagef(c, "--port %d: want 1 to 65535", c.Int("port"))
	case c.IsSet("target-port") && (c.Int("target-port") < 1 || c.Int("target-port") > 65535):
		return usagef(c, "--target-port %d: want 1 to 65535", c.Int("target-port"))
	case !slices.Contains([]corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer}, e.Type):
		return usagef(c, "--type %q: want ClusterIP, NodePort or LoadBalancer", e.Type)
	case e.Protocol != corev1.ProtocolTCP && e.Protocol != corev1.ProtocolUDP:
		return usagef(c, "--protocol %q: want TCP or UDP", e.Protocol)
	}
	return p.withMachine(c, func(ctx context.Context, client *cluster.Client, vm *spec.VirtualMachine) error {
		service := e.Service(vm)
		if err := client.Expose(ctx, service, c.Bool("dry-run")); err != nil {
			return err
		}
		done := "exposes"
		if c.Bool("dry-run") {
			done = "would expose"
		}
		fmt.Fprintf(p.stdout, "Service %s (%s, port %d) %s port %s of %s.\n", service.Name, e.Type, e.Port, done, service.Spec.Ports[0].TargetPort.String(), fullName(vm.Namespace, vm.Name))
		if missing := e.Missing(vm); missing != "" {
			p.note("%s", missing)
		}
		return nil
	})
}
