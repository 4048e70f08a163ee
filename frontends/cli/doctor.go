package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
)

func (p *program) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "say what this host has for machines, what it lacks, and what to do",
		Description: "QEMU, KVM, firmware, TPM, displays, bridges, directories, space, the disks of the machines,\n" +
			"the images that disks are made of, and memory are looked at; nothing is changed. OK\n" +
			"needs nothing, Limited is in the way of some machines, Broken of all of them.\n\n" +
			"Example:\n  vmop-cli doctor",
		ArgsUsage: " ",
		Flags:     []cli.Flag{dataDirFlag(), outputFlag("", formatTable)},
		Action:    p.doctor,
	}
}

func (p *program) doctor(c *cli.Context) error {
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return err
	}
	if c.NArg() > 0 {
		return usagef(c, "doctor takes no arguments, and found %q", c.Args().First())
	}
	h, err := p.host(c)
	if err != nil {
		return err
	}
	findings, err := h.Examine(c.Context, p.probeOptions())
	if err != nil {
		return err
	}
	if forPrograms(format) {
		err = printList(p, format, printedFindings(findings))
	} else {
		var rows [][]string
		for _, f := range findings {
			rows = append(rows, []string{f.Subject, string(f.Status), f.Found})
		}
		err = textout.Table(p.stdout, []string{"SUBJECT", "STATUS", "FOUND"}, rows)
		for _, f := range findings {
			if f.Do != "" {
				fmt.Fprintf(p.stdout, "\n%s: %s\n", f.Subject, f.Do)
			}
		}
	}
	if err == nil && slices.ContainsFunc(findings, func(f host.Finding) bool { return f.Status == host.FindingBroken }) {
		return errSilent
	}
	return err
}
