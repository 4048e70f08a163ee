package main

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/reconcile/console"
)

func (p *program) vncCommand() *cli.Command {
	return &cli.Command{
		Name:      "vnc",
		Usage:     "open the VNC display of a machine, on this host or in a cluster",
		ArgsUsage: "NAME",
		Description: "Starts the first viewer that is installed, vncviewer or remote-viewer, and waits for its\n" +
			"end; Ctrl-C ends it, and the machine goes on. --print prints the connection instead:\n" +
			"vnc+unix://PATH or vnc://HOST:PORT. --proxy-only listens on a port of 127.0.0.1, prints it,\n" +
			"and lets any viewer through. A password is asked for by the viewer.\n\n" +
			clusterDisplayHelp +
			"Examples:\n" +
			"  vmop-cli vnc hello\n" +
			"  vmop-cli vnc hello --proxy-only",
		Flags:  displayFlags(),
		Action: p.vnc,
	}
}

func (p *program) vnc(c *cli.Context) error {
	if inCluster(c) {
		return p.openClusterDisplay(c, console.VNC)
	}
	return p.openDisplay(c, "VNC", vncViewers, "tigervnc-viewer", func(ctx context.Context, client *qmp.Client) (d displayConnection, there bool, err error) {
		info, err := qmp.Do(ctx, client, qmp.QueryVNC{})
		if err != nil || !info.Enabled {
			return d, false, err
		}
		d, err = vncConnection(&info)
		return d, true, err
	})
}

func vncConnection(v *qmp.VNCInfo) (displayConnection, error) {
	d := displayConnection{Protocol: "vnc", Auth: v.Auth}
	if v.Family == "unix" {
		d.Socket, d.URI = v.Service, "vnc+unix://"+v.Service
		return d, nil
	}
	port, err := strconv.Atoi(v.Service)
	if err != nil {
		return d, fmt.Errorf("the port of the VNC server: %w", err)
	}
	d.Host, d.Port = reachable(v.Host), port
	d.URI = "vnc://" + net.JoinHostPort(d.Host, v.Service)
	return d, nil
}

// vncViewers in the order of preference. Only TigerVNC's opens UNIX sockets, as paths; two colons
// precede a port instead of a display.
var vncViewers = []viewer{
	{"vncviewer", func(d displayConnection) []string {
		if d.Socket != "" {
			return []string{d.Socket}
		}
		return []string{vncHost(d.Host) + "::" + strconv.Itoa(d.Port)}
	}},
	{"remote-viewer", func(d displayConnection) []string {
		if d.Socket != "" {
			return nil
		}
		return []string{"--", d.URI}
	}},
}

func vncHost(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return "[" + host + "]"
	}
	return host
}
