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
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func (p *program) spiceCommand() *cli.Command {
	return &cli.Command{
		Name:      "spice",
		Usage:     "open the SPICE display of a machine",
		ArgsUsage: "NAME",
		Description: "Starts the first viewer that is installed, remote-viewer or spicy, and waits for its\n" +
			"end; Ctrl-C ends it, and the machine goes on. --print prints the connection instead:\n" +
			"spice+unix://PATH or spice://HOST:PORT. --proxy-only listens on a\n" +
			"port of 127.0.0.1, prints it, and lets any viewer through. The viewer asks for a password.\n\n" +
			"Examples:\n" +
			"  vmop-cli spice hello\n" +
			"  vmop-cli spice hello --print -o json",
		Flags:  displayFlags(),
		Action: p.spice,
	}
}

// formatText is the format of a single value.
const formatText = "text"

func (p *program) spice(c *cli.Context) error {
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
	full := fullName(m.Namespace, m.Name)
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var info qmp.SpiceInfo
	err = p.askMonitor(ctx, m.socket(runnerconfig.ToolSocket), func(ctx context.Context, client *qmp.Client) (err error) {
		info, err = qmp.Do(ctx, client, qmp.QuerySpice{})
		if errors.Is(err, qmp.ErrCommandNotFound) { // of a QEMU that was built without SPICE
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if !info.Enabled {
		return fmt.Errorf("%s has no SPICE display: its manifest has no spec.vm.display.spice", full)
	}
	return p.openDisplay(ctx, c, connection(&info), spiceViewers, "virt-viewer")
}

// displayConnection is how a viewer gets to a display.
type displayConnection struct {
	Protocol string `json:"protocol"`
	URI      string `json:"uri"`
	// Socket is the path of a UNIX socket; Host and Port are for TCP.
	Socket string `json:"socket,omitempty"`
	Host   string `json:"host,omitempty"`
	Port   int    `json:"port,omitempty"`
	// Auth is "none", or "spice" or "vnc" for a password.
	Auth string `json:"auth"`
}

// connection is how a viewer on this host gets to a machine's display.
func connection(s *qmp.SpiceInfo) displayConnection {
	d := displayConnection{Protocol: "spice", Auth: s.Auth}
	if s.Port == 0 {
		// Viewers take what follows as the path, and decode nothing.
		d.Socket, d.URI = s.Host, "spice+unix://"+s.Host
		return d
	}
	d.Host, d.Port = reachable(s.Host), s.Port
	d.URI = "spice://" + net.JoinHostPort(d.Host, strconv.Itoa(d.Port))
	return d
}

// reachable is an address under which this host reaches what listens on host.
func reachable(host string) string {
	switch host {
	case "", "*", "0.0.0.0": // every address of this host
		return "127.0.0.1"
	case "::":
		return "::1"
	}
	return host
}

// viewer is a program that shows a display.
type viewer struct {
	name string
	// args are its arguments for a connection; nil if it cannot open that.
	args func(d displayConnection) []string
}

// spiceViewers in the order of preference. virt-viewer itself is not among them:
// it takes names of libvirt's machines only.
var spiceViewers = []viewer{
	{"remote-viewer", func(d displayConnection) []string { return []string{"--", d.URI} }},
	{"spicy", func(d displayConnection) []string { return []string{"--uri=" + d.URI} }},
}

// viewerGrace is how long a viewer may take to end that was told to.
const viewerGrace = 5 * time.Second

// runViewer shows a display until the viewer or ctx ends.
func (p *program) runViewer(ctx context.Context, path string, args []string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = viewerGrace
	cmd.Stdout, cmd.Stderr = p.stderr, p.stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil // as it was wished
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
