package main

import (
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"

	buildversion "github.com/vmop/sdk/internal/version"
	"github.com/vmop/sdk/vmop/output"
)

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name:      "version",
		Usage:     "print the version of this program, and of the QEMU that it finds",
		ArgsUsage: " ",
		Description: "A host without QEMU is no error: manifests are checked and rendered there, too.\n\n" +
			"Examples:\n" +
			"  vmop-cli version\n" +
			"  vmop-cli version -o json",
		Flags:  []cli.Flag{outputFlag("", formatText)},
		Action: p.version,
	}
}

func (p *program) version(c *cli.Context) error {
	format, err := outputFormat(c, formatText)
	if err != nil {
		return err
	}
	if c.NArg() > 0 {
		return usagef(c, "version takes no arguments, and found %q", c.Args().First())
	}
	out := output.Version{ClientVersion: output.ClientVersion{
		GitVersion: version(), GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}}
	if found, err := p.probe(c.Context); err != nil {
		out.QEMU.Problem = err.Error()
	} else {
		v := found.Host.Version
		out.QEMU.Path, out.QEMU.Version = found.Host.QEMU, fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Micro)
	}
	if forPrograms(format) {
		return p.printOne(format, &out)
	}
	if _, err := fmt.Fprintln(p.stdout, "vmop-cli", out.ClientVersion.GitVersion); err != nil {
		return err
	}
	if out.QEMU.Problem != "" {
		p.note("QEMU: %s", out.QEMU.Problem)
		return nil
	}
	_, err = fmt.Fprintf(p.stdout, "QEMU %s, %s\n", out.QEMU.Version, out.QEMU.Path)
	return err
}

func version() string { return buildversion.String() }
