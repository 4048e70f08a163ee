package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
)

// Main runs the program, with its name in args[0], and returns the exit code.
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
	// The flag package's messages are for flags with one hyphen.
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
