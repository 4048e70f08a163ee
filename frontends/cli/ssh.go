package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/vmop/host"
)

// sshName is the command whose arguments may be those of a command in the guest.
const sshName = "ssh"

func (p *program) sshCommand() *cli.Command {
	return &cli.Command{
		Name:      sshName,
		Usage:     "log in to the guest of a machine of this host",
		ArgsUsage: "NAME [COMMAND [ARGUMENT...]]",
		Description: "Runs this system's ssh for the port of this host that leads to the guest's port 22. The\n" +
			"guest's host keys are in a file of the machine's own. A COMMAND with ARGUMENTs gets them as\n" +
			"they are given here, blanks, quotes and asterisks included: they are quoted for the shell of\n" +
			"the guest's user, which is one of POSIX (sh, bash, zsh). A COMMAND alone is a line for that\n" +
			"shell, as with ssh.\n\n" +
			"Examples:\n" +
			"  vmop-cli ssh web\n" +
			"  vmop-cli ssh web ls -l \"my files\"\n" +
			"  vmop-cli ssh web \"cd /var/log && ls *.log\"",
		Flags: machineFlags(sshUserFlag()),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return usagef(c, "want the NAME of a machine, and found none")
			}
			_, options, err := p.sshOptions(c, c.Args().First())
			if err != nil {
				return err
			}
			args := append(host.SSHArguments(options), "--", host1(options))
			return p.execute(c, sshName, append(args, remoteCommand(c.Args().Tail())...))
		},
	}
}

// remoteCommand quotes a command for ssh, which joins its arguments by blanks for the shell of the
// guest's user to split. A single word is passed unquoted, as a line for that shell.
func remoteCommand(words []string) []string {
	if len(words) < 2 {
		return words
	}
	return []string{shellwords.Join(words...)}
}

func sshUserFlag() cli.Flag {
	return &cli.StringFlag{Name: "user", Aliases: []string{"l"}, Usage: "`NAME` of the guest's user (default: the one that run --image made)"}
}

func host1(options []host.SSHOption) string {
	for _, o := range options {
		if o.Name == "HostName" {
			return o.Value
		}
	}
	return ""
}

func (p *program) scpCommand() *cli.Command {
	return &cli.Command{
		Name:      "scp",
		Usage:     "copy files to or from the guest of a machine of this host",
		ArgsUsage: "NAME SOURCE... TARGET",
		Description: "Runs this system's scp as vmop-cli ssh runs ssh. A path that begins with a colon is in\n" +
			"the guest.\n\n" +
			"Examples:\n" +
			"  vmop-cli scp web notes.txt :\n" +
			"  vmop-cli scp web -r :/var/log ./logs",
		Flags: machineFlags(sshUserFlag(), &cli.BoolFlag{Name: "recursive", Aliases: []string{"r"}, Usage: "copy directories, too", DisableDefaultText: true}),
		Action: func(c *cli.Context) error {
			if c.NArg() < 3 {
				return usagef(c, "want the NAME of a machine, what to copy and where to, and found %s", arguments(c.NArg()))
			}
			_, options, err := p.sshOptions(c, c.Args().First())
			if err != nil {
				return err
			}
			args := host.SSHArguments(options)
			if c.Bool("recursive") {
				args = append(args, "-r")
			}
			args = append(args, "--")
			guest := false
			for _, path := range c.Args().Tail() {
				switch {
				case strings.HasPrefix(path, ":"):
					guest = true
					path = host1(options) + path
				case strings.Contains(path, ":") && !strings.HasPrefix(path, "/"):
					path = "./" + path // not another host
				}
				args = append(args, path)
			}
			if !guest {
				return usagef(c, "none of the paths is in the guest: begin that one with a colon")
			}
			return p.execute(c, "scp", args)
		},
	}
}

func (p *program) sshConfigCommand() *cli.Command {
	return &cli.Command{
		Name:      "ssh-config",
		Usage:     "print what ssh needs to know about a machine of this host",
		ArgsUsage: "NAME",
		Description: "Prints a section for ~/.ssh/config, with which ssh, scp, rsync and editors reach the\n" +
			"guest by the machine's name.\n\n" +
			"Example:\n" +
			"  vmop-cli ssh-config web >> ~/.ssh/config",
		Flags: machineFlags(sshUserFlag()),
		Action: func(c *cli.Context) error {
			name, err := oneName(c)
			if err != nil {
				return err
			}
			m, options, err := p.sshOptions(c, name)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(p.stdout, host.SSHConfig(m.Name, options))
			return err
		},
	}
}

func (p *program) sshOptions(c *cli.Context, name string) (host.Machine, []host.SSHOption, error) {
	m, err := p.find(c, name)
	if err != nil {
		return m, nil, err
	}
	o, err := m.Object()
	if err != nil {
		return m, nil, err
	}
	def, err := m.Definition()
	if err != nil {
		return m, nil, err
	}
	if user := c.String("user"); user != "" {
		def.SSH.User = user
	}
	options, err := m.SSHOptions(o.VirtualMachine, def.SSH)
	if err == nil && !m.Running() && c.Command.Name != "ssh-config" {
		err = fmt.Errorf("%s does not run: start it with %s", m.FullName(), p.hint(c, "start", m.FullName()))
	}
	return m, options, err
}

// execute runs a program of this system in the terminal; its exit code is ours.
func (p *program) execute(c *cli.Context, name string, args []string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s is not installed (Debian: package openssh-client): %w", name, err)
	}
	// Ctrl-C is for the program.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, os.Interrupt, syscall.SIGQUIT)
	defer signal.Stop(ignored)
	cmd := exec.CommandContext(c.Context, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, p.stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		status, _ := exit.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			return &exitStatus{code: exitSignal + int(status.Signal())}
		}
		return &exitStatus{code: exit.ExitCode()}
	}
	return err
}
