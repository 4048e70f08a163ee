package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/runner"

	"github.com/urfave/cli/v2"
)

// The exit codes of this program; see exitCodes. Those of a machine's outcome are the
// runner's.
const (
	exitOK      = runner.ExitOK
	exitError   = 1
	exitUsage   = runner.ExitUsage
	exitForced  = runner.ExitForced
	exitFailure = runner.ExitFailure
	// exitNoProgram is for a program that the guest does not have, as that of shells.
	exitNoProgram = 127
	// exitSignal is added to the number of the signal that ended a program whose exit code
	// is passed on, as shells do.
	exitSignal = 128
	// exitNoByte is that of a command whose code is none that a program of this host can
	// have, and of ssh without a connection.
	exitNoByte = 255
)

// program is what the commands work with instead of globals.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

// Main is the whole program: args[0] is its name. It returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr, getenv: os.Getenv}
	app := p.app()
	if len(args) < 2 {
		app.Writer = stderr
		args = []string{app.Name, "--help"}
		if err := app.RunContext(ctx, args); err != nil {
			return p.failed(err)
		}
		return exitUsage
	}
	if err := app.RunContext(ctx, reorder(app, args)); err != nil {
		return p.failed(err)
	}
	return exitOK
}

// usageError says that the program was called wrongly.
type usageError struct {
	command string // "" for the program itself
	message string
}

func (e *usageError) Error() string { return e.message }

// usagef makes a usage error of a command.
func usagef(c *cli.Context, format string, args ...any) error {
	e := &usageError{message: fmt.Sprintf(format, args...)}
	if c.Command != nil && c.Command.Name != c.App.Name {
		e.command = c.Command.Name
	}
	return e
}

// exitStatus ends the program with a code. An error that was told already, or
// none that needs telling, is nil.
type exitStatus struct {
	code int
	err  error
}

func (e *exitStatus) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitStatus) Unwrap() error { return e.err }

// errSilent ends the program with exit code 1 after everything was said.
var errSilent error = &exitStatus{code: exitError}

// failed tells an error and returns the exit code.
func (p *program) failed(err error) int {
	var usage *usageError
	if errors.As(err, &usage) {
		help := strings.TrimRight("vmop-cli "+usage.command, " ")
		p.errorf("%s", usage.message)
		fmt.Fprintf(p.stderr, "See: %s --help\n", help)
		return exitUsage
	}
	var status *exitStatus
	if errors.As(err, &status) {
		// An error that was told may be within one that chooses another code.
		if status.err != nil && !errors.Is(status.err, errSilent) {
			p.errorf("%v", status.err)
		}
		return status.code
	}
	p.errorf("%v", err)
	if exit := cli.ExitCoder(nil); errors.As(err, &exit) && !errors.As(err, new(*exec.ExitError)) {
		return exitUsage // the help command's, about a command that does not exist
	}
	return exitError
}

// errorf writes an error to the terminal: printable, whatever a file or a
// machine put into it.
func (p *program) errorf(format string, args ...any) {
	p.note("vmop-cli: "+format, args...)
}

// note writes a message that is not the command's result.
func (p *program) note(format string, args ...any) {
	fmt.Fprintln(p.stderr, textout.Printable(fmt.Sprintf(format, args...)))
}

// app is the program's commands. They have one file each.
func (p *program) app() *cli.App {
	app := &cli.App{
		Name:  "vmop-cli",
		Usage: "virtual machines from manifests, on this host and in a cluster",
		Description: "Manifests are those of VirtualMachine resources; the same files work in a cluster.\n" +
			"FILE may be - for the standard input. Flags may stand before and behind FILE.\n\n" +
			"Machines are those of this host. With --cluster, --context or --kubeconfig they are those of\n" +
			"a cluster, for the commands that have these flags.\n\n" +
			"Examples:\n  vmop-cli run vm.yaml --detach\n  vmop-cli list\n  vmop-cli stop web",
		Version:                   version(),
		DisableSliceFlagSeparator: true, // paths contain commas
		Writer:                    p.stdout,
		ErrWriter:                 p.stderr,
		ExitErrHandler:            func(*cli.Context, error) {}, // Main decides
		OnUsageError:              onUsageError,
		Commands: []*cli.Command{
			p.validateCommand(), p.renderCommand(), p.changesCommand(), p.convertCommand(),
			p.runCommand(), p.listCommand(), p.stopCommand(), p.consoleCommand(), p.deleteCommand(),
			p.pauseCommand(), p.resumeCommand(), p.resetCommand(), p.nmiCommand(),
			p.screenshotCommand(), p.spiceCommand(), p.vncCommand(), p.guestCommand(),
			p.inspectCommand(), p.describeCommand(), p.exposeCommand(), p.superviseCommand(),
			p.createCommand(), p.startCommand(), p.restartCommand(), p.applyCommand(), p.editCommand(), p.waitCommand(), p.renameCommand(), p.cloneCommand(), p.snapshotCommand(), p.diskCommand(), p.imageCommand(), p.topCommand(), p.enableCommand(), p.disableCommand(), p.sshCommand(), p.scpCommand(), p.sshConfigCommand(), p.consolePasswordCommand(), p.logsCommand(), p.eventsCommand(), p.diffCommand(), p.leftoversCommand(), p.takeoverCommand(),
			p.doctorCommand(), p.versionCommand(), p.completionCommand(), p.completeCommand(), p.schemaCommand(), p.manCommand(),
		},
	}
	app.Action = func(c *cli.Context) error {
		name := c.Args().First()
		if name == "" {
			return usagef(c, "a command is missing")
		}
		if near := nearest(name, commandNames(app)); near != "" {
			return usagef(c, "there is no command %q. Did you mean %q?", name, near)
		}
		return usagef(c, "there is no command %q", name)
	}
	app.Description = withExitCodes("", app.Description)
	for _, c := range app.Commands {
		c.Description = withExitCodes(c.Name, c.Description)
		c.Category = categories[c.Name]
		c.HideHelpCommand = true
		c.OnUsageError = onUsageError
	}
	return app
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	// The flag package's messages are for its own flags, with one hyphen.
	message := err.Error()
	for _, m := range []struct{ prefix, instead, behind string }{
		{"flag provided but not defined: -", "there is no flag --", ""},
		{"flag needs an argument: -", "--", " needs a value"},
	} {
		if name, ok := strings.CutPrefix(message, m.prefix); ok {
			message = m.instead + strings.TrimLeft(name, "-") + m.behind
			if len(strings.TrimLeft(name, "-")) == 1 {
				message = strings.Replace(message, "--", "-", 1)
			}
			if near := nearest(strings.TrimLeft(name, "-"), flagNames(c.Command)); near != "" && m.behind == "" {
				message += ". Did you mean --" + near + "?"
			}
		}
	}
	return usagef(c, "%s", message)
}
