package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/inspect"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qmp"
)

func (p *program) guestCommand() *cli.Command {
	return &cli.Command{
		Name:      "guest",
		Usage:     "ask the QEMU guest agent in a machine",
		ArgsUsage: "NAME ping | info | exec -- COMMAND [ARGUMENT...]",
		Description: "ping asks for a sign of life, info for the operating system, the host name and the\n" +
			"addresses. exec runs a command in the guest, without a shell and as the agent's user\n" +
			"(root), and shows its output when it has ended. The command reads nothing, or with\n" +
			"--stdin what this program reads, up to its end. Ctrl-C and --timeout end the waiting,\n" +
			"not the command.\n" +
			"The guest needs the agent: the package qemu-guest-agent of Linux distributions.\n\n" +
			"Examples:\n" +
			"  vmop-cli guest hello info\n" +
			"  vmop-cli guest hello exec -- systemctl is-system-running\n" +
			"  vmop-cli guest --stdin hello exec -- tee /etc/motd < motd",
		Flags: machineFlags(
			outputFlag("info", formatTable),
			&cli.BoolFlag{Name: "stdin", Aliases: []string{"i"}, Usage: "let the command of exec read the standard input", DisableDefaultText: true},
			&cli.DurationFlag{Name: "timeout", Usage: "wait for `DURATION`, such as 30s, and no longer", DefaultText: "for ever"},
		),
		Action: p.guest,
	}
}

func (p *program) guest(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) < 2 {
		return usagef(c, "want the NAME of a machine and what to do, and found %s", arguments(len(args)))
	}
	q, err := p.question(c, args[1], args[2:])
	if err != nil {
		return err
	}
	m, err := p.active(c, args[0])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if d := c.Duration("timeout"); d > 0 {
		timed, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		ctx = timed
	}
	err = p.askAgent(ctx, &m, q)
	var status *exitStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	if errors.Is(err, errNotExecuting) {
		err = fmt.Errorf("%w; see %s", err, p.hint(c, "resume", m.FullName()))
	}
	return fmt.Errorf("guest %s: %w", m.FullName(), err)
}

type question struct {
	ask func(context.Context, *qga.Client) error
	// silent: nothing of ours is written to the standard error, which is a command's.
	silent bool
}

// question is that of the arguments behind the NAME.
func (p *program) question(c *cli.Context, what string, args []string) (question, error) {
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return question{}, err
	}
	var q question
	switch what {
	case "ping":
		q.ask = func(ctx context.Context, a *qga.Client) error {
			if err := a.Ping(ctx); err != nil {
				return err
			}
			fmt.Fprintln(p.stdout, "The guest agent answers.")
			return nil
		}
	case "info":
		q.ask = func(ctx context.Context, a *qga.Client) error { return p.guestInfo(ctx, a, format) }
	case "exec":
		if len(args) == 0 {
			return q, usagef(c, "exec: want -- and a COMMAND")
		}
		q.ask = func(ctx context.Context, a *qga.Client) error { return p.guestExec(ctx, a, args, c.Bool("stdin")) }
		q.silent = true
	default:
		return q, usagef(c, "%q: want ping, info or exec", what)
	}
	switch {
	case what != "exec" && len(args) > 0:
		return q, usagef(c, "%s takes no arguments, and found %q", what, args[0])
	case c.IsSet("output") && what != "info":
		return q, usagef(c, "--output is for info; what stands behind exec -- is the command's")
	case c.IsSet("stdin") && what != "exec":
		return q, usagef(c, "--stdin is for exec")
	case c.Duration("timeout") < 0:
		return q, usagef(c, "--timeout %v: want 0 or more", c.Duration("timeout"))
	}
	return q, nil
}

func (p *program) askAgent(ctx context.Context, m *host.Machine, q question) error {
	if err := p.askMonitor(ctx, m.Socket(qemucmd.SocketToolMonitor), agentReady); err != nil {
		return err
	}
	agent, err := qga.Dial(ctx, m.Socket(qemucmd.SocketGuestAgent))
	if err != nil {
		return err
	}
	if q.silent {
		err = q.ask(ctx, agent)
	} else {
		g := p.begin("waiting for the guest agent")
		err = q.ask(ctx, agent)
		g.end()
	}
	return errors.Join(err, agent.Close())
}

var errNotExecuting = errors.New("the guest does not execute")

// agentReady reports whether an agent can answer. QEMU keeps what is sent to a missing one until it
// connects.
func agentReady(ctx context.Context, c *qmp.Client) error {
	run, err := qmp.Do(ctx, c, qmp.QueryStatus{})
	if err != nil {
		return err
	}
	if !run.Running {
		return fmt.Errorf("%w: QEMU's run state is %s", errNotExecuting, run.Status)
	}
	chardevs, err := qmp.Do(ctx, c, qmp.QueryChardev{})
	if err != nil {
		return err
	}
	for _, d := range chardevs {
		if d.Label == qemucmd.GuestAgentChardev && d.FrontendOpen {
			return nil
		}
	}
	return errNoAgent
}

var errNoAgent = errors.New("no guest agent is connected: in the guest, qemu-guest-agent is not installed or has not started yet")

// maxGuestInput limits the input of a command in a guest, in bytes: it is one message to the agent.
const maxGuestInput = 4 << 20

// missingProgram is the message of GLib, by which the agent starts programs, for a missing one
// (g_spawn_async, ENOENT).
const missingProgram = "(No such file or directory)"

func (p *program) guestExec(ctx context.Context, a *qga.Client, command []string, stdin bool) error {
	var input []byte
	if stdin {
		var err error
		if input, err = io.ReadAll(io.LimitReader(p.stdin, maxGuestInput+1)); err != nil {
			return fmt.Errorf("read the standard input: %w", err)
		}
		if len(input) > maxGuestInput {
			return fmt.Errorf("the standard input has more than the %d MiB that can be passed to a guest", maxGuestInput>>20)
		}
	}
	status, err := a.Run(ctx, qga.Program{Path: command[0], Args: command[1:], Input: input, Capture: true})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errors.New("the time is up; the command goes on in the guest, if it was started")
	case ctx.Err() != nil:
		return errors.New("interrupted; the command goes on in the guest, if it was started")
	case errors.Is(err, qga.ErrTooLarge):
		return fmt.Errorf("the command has ended, but its output is too much for the guest agent's channel and is lost (at most %d MiB): write it to a file in the guest: %w", qga.MaxReply*3/4>>20, err)
	}
	if refused := (*qga.Error)(nil); errors.As(err, &refused) && strings.Contains(refused.Error(), missingProgram) {
		return &exitStatus{code: exitNoProgram, err: err}
	}
	if err != nil {
		return err
	}
	if _, err := p.stdout.Write(status.Stdout); err != nil {
		return err
	}
	if _, err := p.stderr.Write(status.Stderr); err != nil {
		return err
	}
	if status.StdoutTruncated || status.StderrTruncated {
		p.note("The guest agent has cut off the output.")
	}
	switch code := status.ExitCode; {
	case status.Signal > 0:
		return &exitStatus{code: min(exitSignal+status.Signal, exitNoByte)}
	case code < 0 || code > exitNoByte: // Windows has such codes, and this host's exit codes are bytes
		p.note("The command's exit code is %d.", code)
		return &exitStatus{code: exitNoByte}
	case code > 0:
		return &exitStatus{code: code}
	}
	return nil
}

// guestReport is what a guest agent reports. What it does not know, or may not report, is left out.
type guestReport struct {
	Agent      string // its version
	HostName   string
	OS         *osReport
	Interfaces []inspect.Interface
}

type osReport struct {
	ID            string
	Name          string
	Version       string
	KernelRelease string
	Machine       string
}

func (p *program) guestInfo(ctx context.Context, a *qga.Client, format string) error {
	r, err := askGuest(ctx, a)
	if err != nil {
		return err
	}
	if forPrograms(format) {
		return p.printOne(format, printedGuest(&r))
	}
	rows := [][]string{{"Guest agent", textout.OrNone(r.Agent)}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("Host name", r.HostName)
	if r.OS != nil {
		add("Operating system", r.OS.Name)
		add("Kernel", strings.TrimSpace(r.OS.KernelRelease+" "+r.OS.Machine))
	}
	if err := textout.Properties(p.stdout, rows); err != nil {
		return err
	}
	var interfaces [][]string
	for _, i := range r.Interfaces {
		interfaces = append(interfaces, []string{i.Name, textout.OrNone(i.MAC), textout.OrNone(strings.Join(i.Addresses, ", "))})
	}
	return textout.Section(p.stdout, []string{"INTERFACE", "MAC", "ADDRESSES"}, interfaces)
}

func askGuest(ctx context.Context, a *qga.Client) (guestReport, error) {
	var r guestReport
	info, err := a.Info(ctx)
	if err != nil {
		return r, err
	}
	r.Agent = info.Version
	for _, ask := range []func() error{
		func() (err error) { r.HostName, err = a.HostName(ctx); return err },
		func() error {
			os, err := a.OSInfo(ctx)
			if err == nil {
				r.OS = &osReport{ID: os.ID, Name: os.PrettyName, Version: os.VersionID, KernelRelease: os.KernelRelease, Machine: os.Machine}
			}
			return err
		},
		func() error {
			interfaces, err := a.Interfaces(ctx)
			for _, i := range interfaces {
				out := inspect.Interface{Name: i.Name, MAC: i.HardwareAddress}
				for _, address := range i.Addresses {
					out.Addresses = append(out.Addresses, address.String())
				}
				r.Interfaces = append(r.Interfaces, out)
			}
			return err
		},
	} {
		// Agents may lack commands, or be configured not to answer them.
		if err := ask(); err != nil && !errors.As(err, new(*qga.Error)) {
			return r, err
		}
	}
	return r, nil
}

func printedGuest(r *guestReport) *output.GuestInfo {
	out := &output.GuestInfo{AgentVersion: r.Agent, HostName: r.HostName}
	if o := r.OS; o != nil {
		out.OSInfo = &output.OSInfo{ID: o.ID, PrettyName: o.Name, VersionID: o.Version, KernelRelease: o.KernelRelease, Machine: o.Machine}
	}
	for _, i := range r.Interfaces {
		out.Interfaces = append(out.Interfaces, output.Interface{Name: i.Name, MAC: i.MAC, IPAddresses: i.Addresses})
	}
	return out
}
