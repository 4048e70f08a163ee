package main

import (
	"embed"
	"strings"

	"github.com/urfave/cli/v2"
)

//go:embed shell
var shellScripts embed.FS

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print what completes command lines in a shell: bash, zsh or fish",
		ArgsUsage: "SHELL",
		Description: "Commands, flags, their values, and the names of this host's machines are completed.\n\n" +
			"For this shell:\n" +
			"  bash: source <(vmop-cli completion bash)\n" +
			"  zsh:  source <(vmop-cli completion zsh)\n" +
			"  fish: vmop-cli completion fish | source\n\n" +
			"For every shell: make install puts them where shells look for them.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef(c, "want one shell: bash, zsh or fish")
			}
			name := c.Args().First()
			data, err := shellScripts.ReadFile("shell/" + name)
			if err != nil || strings.Contains(name, "/") {
				return usagef(c, "there is no completion for the shell %q: want bash, zsh or fish", name)
			}
			_, err = p.stdout.Write(data)
			return err
		},
	}
}

func (p *program) manCommand() *cli.Command {
	return &cli.Command{
		Name:   "man",
		Usage:  "print the manual page",
		Hidden: true,
		Action: func(c *cli.Context) error {
			page, err := c.App.ToManWithSection(1)
			if err != nil {
				return err
			}
			_, err = p.stdout.Write([]byte(page))
			return err
		},
	}
}
