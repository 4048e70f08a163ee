package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) enableCommand() *cli.Command {
	return &cli.Command{
		Name:      "enable",
		Usage:     "start a machine with this host, by systemd",
		ArgsUsage: "NAME",
		Description: "Makes a service of systemd that runs the machine: one of your own manager, which starts\n" +
			"with the host if you linger (loginctl enable-linger), or with --system, for which you\n" +
			"must be root, one of the system. It is confined as far as QEMU lets it be. A machine\n" +
			"that runs already is not touched.\n\n" +
			"Examples:\n" +
			"  vmop-cli enable web\n" +
			"  vmop-cli enable web --print",
		Flags: machineFlags(
			&cli.BoolFlag{Name: "system", Usage: "a service of the system", DisableDefaultText: true},
			&cli.StringFlag{Name: "restart", Value: string(host.RestartOnFailure), Usage: "`WHEN` systemd starts a machine again that has ended: no, on-failure or always"},
			&cli.BoolFlag{Name: "print", Usage: "print the service instead", DisableDefaultText: true},
		),
		Action: p.enable,
	}
}

func (p *program) enable(c *cli.Context) error {
	h, m, err := p.named(c, (*host.Host).Find)
	if err != nil {
		return err
	}
	o, err := m.Object()
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	u := host.UnitOf(o.VirtualMachine, []string{exe, "start", "--foreground", "--stopped-exit", strconv.Itoa(host.UnitStopped), "--data-dir", h.DataDir(), m.FullName()})
	u.System, u.Restart = c.Bool("system"), host.RestartPolicy(c.String("restart"))
	if u.System && os.Geteuid() != 0 {
		u.User = p.getenv("USER")
		if !c.Bool("print") {
			return errors.New("only root makes services of the system: leave out --system, or have it installed with --print")
		}
		if u.User == "" {
			return errors.New("USER says not who you are, as whom the service would run")
		}
	}
	text, err := u.Text()
	if err != nil {
		return err
	}
	if c.Bool("print") {
		_, err := fmt.Fprint(p.stdout, text)
		return err
	}
	path, err := h.Enable(u)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s starts with this host, by %s\n", m.FullName(), path)
	p.reload(c, u.System)
	if !u.System && !lingers(p.getenv("USER")) {
		p.note("Without a login it starts only if you linger: loginctl enable-linger")
	}
	return nil
}

// renew updates the units that start a machine from its manifest.
func (p *program) renew(c *cli.Context, h *host.Host, o *spec.Object) {
	done, err := h.Renew(o.VirtualMachine)
	if err != nil {
		p.note("The service that starts %s is as it was: %v", o.Name, err)
	}
	for _, path := range done.Units {
		p.note("%s follows the manifest.", path)
		p.reload(c, h.IsSystemUnit(path))
	}
	for _, path := range done.Stale {
		p.note("%s does not follow the manifest: it was changed, or is root's. Make it anew with %s.", path, p.hint(c, "enable", fullName(o.Namespace, o.Name)))
	}
}

func lingers(user string) bool {
	_, err := os.Stat(filepath.Join("/var/lib/systemd/linger", filepath.Base(user)))
	return user != "" && err == nil
}

// reload has systemd reload its units, if it runs here.
func (p *program) reload(c *cli.Context, system bool) {
	args := []string{"--user", "daemon-reload"}
	if system {
		args = args[1:]
	}
	out, err := exec.CommandContext(c.Context, "systemctl", args...).CombinedOutput()
	if err != nil {
		p.note("systemd does not know yet: systemctl %s: %v: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
}

func (p *program) disableCommand() *cli.Command {
	return &cli.Command{
		Name:      "disable",
		Usage:     "do not start a machine with this host any more",
		ArgsUsage: "NAME",
		Description: "Removes what enable made. A machine that runs goes on until it is stopped.\n\n" +
			"Example:\n" +
			"  vmop-cli disable web",
		Flags: machineFlags(),
		Action: func(c *cli.Context) error {
			h, m, err := p.named(c, (*host.Host).Find)
			if err != nil {
				return err
			}
			units, err := h.Disable(m.Namespace, m.Name)
			if err != nil {
				return err
			}
			if len(units) == 0 {
				fmt.Fprintf(p.stdout, "%s is not started with this host.\n", m.FullName())
				return nil
			}
			for _, path := range units {
				fmt.Fprintf(p.stdout, "%s is not started with this host any more: %s is gone.\n", m.FullName(), path)
				p.reload(c, h.IsSystemUnit(path))
			}
			return nil
		},
	}
}
