package main

import (
	"context"
	"net"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/reconcile/console"
)

func (p *program) spiceCommand() *cli.Command {
	return &cli.Command{
		Name:      "spice",
		Usage:     "open the SPICE display of a machine, on this host or in a cluster",
		ArgsUsage: "NAME",
		Description: "Starts the first viewer that is installed, remote-viewer or spicy, and waits for its\n" +
			"end; Ctrl-C ends it, and the machine goes on. --print prints the connection instead:\n" +
			"spice+unix://PATH or spice://HOST:PORT. --proxy-only listens on a\n" +
			"port of 127.0.0.1, prints it, and lets any viewer through. The viewer asks for a password.\n\n" +
			clusterDisplayHelp +
			"Examples:\n" +
			"  vmop-cli spice hello\n" +
			"  vmop-cli spice --cluster -n shop web\n" +
			"  vmop-cli spice hello --print -o json",
		Flags:  displayFlags(),
		Action: p.spice,
	}
}

func (p *program) spice(c *cli.Context) error {
	if inCluster(c) {
		return p.openClusterDisplay(c, console.SPICE)
	}
	return p.openDisplay(c, "SPICE", spiceViewers, "virt-viewer", func(ctx context.Context, client *qmp.Client) (d displayConnection, there bool, err error) {
		info, err := qmp.Do(ctx, client, qmp.QuerySpice{})
		if err != nil || !info.Enabled {
			return d, false, err
		}
		return connection(&info), true, nil
	})
}

func connection(s *qmp.SpiceInfo) displayConnection {
	d := displayConnection{Protocol: "spice", Auth: s.Auth}
	if s.Port == 0 {
		// Viewers take the rest of the URI as the path, without decoding.
		d.Socket, d.URI = s.Host, "spice+unix://"+s.Host
		return d
	}
	d.Host, d.Port = reachable(s.Host), s.Port
	d.URI = "spice://" + net.JoinHostPort(d.Host, strconv.Itoa(d.Port))
	return d
}

// spiceViewers in the order of preference. virt-viewer itself accepts only names of libvirt's
// machines.
var spiceViewers = []viewer{
	{"remote-viewer", func(d displayConnection) []string { return []string{"--", d.URI} }},
	{"spicy", func(d displayConnection) []string { return []string{"--uri=" + d.URI} }},
}
