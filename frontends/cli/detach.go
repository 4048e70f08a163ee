package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
)

// superviseName is the command that a detached run starts itself with.
const superviseName = "supervise"

// detach runs a machine in a process of its own and returns when its guest runs.
func (p *program) detach(ctx context.Context, c *cli.Context, j *host.Job) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	full := j.FullName()
	g := p.begin(full + ": starting")
	started, err := j.Start(ctx, host.StartOptions{Supervisor: []string{exe, superviseName}, Progress: g.set})
	g.end()
	if failed := (*host.StartError)(nil); errors.As(err, &failed) {
		p.tellLog(c, failed)
		return &exitStatus{code: failed.ExitCode, err: err}
	}
	switch {
	case err != nil:
		return err
	case started.Ended:
		fmt.Fprintf(p.stdout, "%s ran and has ended.\n", full)
	default:
		by := fmt.Sprintf("process %d", started.PID)
		if started.Service != "" {
			by = started.Service
		}
		fmt.Fprintf(p.stdout, "%s runs (%s). Console: %s\n", full, by, p.hint(c, "console", full))
	}
	if started.Outside != "" {
		p.note("It was started outside of systemd: %s", started.Outside)
	}
	return nil
}

func verboseFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show what QEMU and its helpers say themselves, too; the machine's log always has it", DisableDefaultText: true}
}

// tellLog prints the part of the log of a failed start that the error lacks: all of it if there is
// no reason, otherwise warnings and, if requested, the output of QEMU and other programs.
func (p *program) tellLog(c *cli.Context, failed *host.StartError) {
	hidden := false
	for _, line := range failed.Log {
		_, said, _ := strings.Cut(line, " ")
		source, _, _ := strings.Cut(said, ": ")
		theirs := source == "qemu" || source == "swtpm" || source == "virtiofsd"
		if failed.Reason == "" || source == "warning" || theirs && c.Bool("verbose") {
			p.note("%s", line)
		} else if theirs {
			hidden = true
		}
	}
	if hidden {
		p.tellVerbose()
	}
}

func (p *program) tellVerbose() {
	p.note("What QEMU itself has said is shown with -v.")
}

func (p *program) superviseCommand() *cli.Command {
	return &cli.Command{
		Name:   superviseName,
		Usage:  "run a machine for run --detach, which starts this",
		Hidden: true,
		Action: p.supervise,
	}
}

// supervise runs a detached machine. Its standard error is the log.
func (p *program) supervise(c *cli.Context) error {
	outcome, err := host.Supervise(c.Context, host.SuperviseOptions{Log: p.stderr})
	switch {
	case errors.Is(err, host.ErrNotSupervisor):
		return usagef(c, "this command is started by run --detach only: %v", err)
	case err != nil && outcome.ExitCode() != exitOK:
		if outcome.Message != "" { // which the log has
			err = nil
		}
		return &exitStatus{code: outcome.ExitCode(), err: err}
	}
	return err
}
