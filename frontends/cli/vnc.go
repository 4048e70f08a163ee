package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func (p *program) vncCommand() *cli.Command {
	return &cli.Command{
		Name:      "vnc",
		Usage:     "open the VNC display of a machine",
		ArgsUsage: "NAME",
		Description: "Starts the first viewer that is installed, vncviewer or remote-viewer, and waits for its\n" +
			"end; Ctrl-C ends it, and the machine goes on. --print prints the connection instead:\n" +
			"vnc+unix://PATH or vnc://HOST:PORT. --proxy-only listens on a port of 127.0.0.1, prints it,\n" +
			"and lets any viewer through. A password is asked for by the viewer.\n\n" +
			"Examples:\n" +
			"  vmop-cli vnc hello\n" +
			"  vmop-cli vnc hello --proxy-only --port 5999",
		Flags:  displayFlags(),
		Action: p.vnc,
	}
}

func (p *program) vnc(c *cli.Context) error {
	name, err := oneName(c)
	if err != nil {
		return err
	}
	if err := checkDisplayFlags(c); err != nil {
		return err
	}
	m, err := p.active(c, name)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var info qmp.VNCInfo
	err = p.askMonitor(ctx, m.socket(runnerconfig.ToolSocket), func(ctx context.Context, client *qmp.Client) (err error) {
		info, err = qmp.Do(ctx, client, qmp.QueryVNC{})
		if errors.Is(err, qmp.ErrCommandNotFound) { // of a QEMU that was built without VNC
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if !info.Enabled {
		return fmt.Errorf("%s has no VNC display: its manifest has no spec.vm.display.vnc", fullName(m.Namespace, m.Name))
	}
	d, err := vncConnection(&info)
	if err != nil {
		return err
	}
	return p.openDisplay(ctx, c, d, vncViewers, "tigervnc-viewer")
}

// vncConnection is how a viewer on this host gets to a machine's VNC server.
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

// vncViewers in the order of preference. Of them only TigerVNC's opens UNIX
// sockets, as paths; two colons lead to a port in place of a display.
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

// openDisplay does with a connection what the flags say.
func (p *program) openDisplay(ctx context.Context, c *cli.Context, d displayConnection, viewers []viewer, pkg string) error {
	switch {
	case c.Bool("proxy-only"):
		return p.proxyDisplay(ctx, c, d)
	case c.Bool("print") && c.String("output") == formatJSON:
		return writeJSON(p.stdout, d)
	case c.Bool("print"):
		fmt.Fprintln(p.stdout, printableCell(d.URI))
		return nil
	}
	for _, v := range viewers {
		args := v.args(d)
		if args == nil {
			continue // it cannot open this
		}
		if path, err := exec.LookPath(v.name); err == nil {
			return p.runViewer(ctx, path, args)
		}
	}
	fmt.Fprintln(p.stdout, printableCell(d.URI))
	return fmt.Errorf("no viewer is installed to open this. Debian, Ubuntu and Fedora have %s in the package %s", viewers[0].name, pkg)
}
