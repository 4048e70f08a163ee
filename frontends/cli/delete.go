package main

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
)

func (p *program) deleteCommand() *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "forget a machine",
		ArgsUsage: "NAME",
		Description: "Removes a machine that does not run from this host. Its disks stay, with what belongs\n" +
			"to them (UUID, UEFI variables, TPM state): the next run of a machine of this name has\n" +
			"them again. --disks removes them too, for which it asks for the machine's name; that\n" +
			"also works later.\n" +
			"Images and devices that run was given by --disk are never touched, and nor is one that\n" +
			"another machine has as a disk.\n\n" +
			"Examples:\n" +
			"  vmop-cli delete hello\n" +
			"  vmop-cli delete web --disks --yes",
		Flags: machineFlags(
			&cli.BoolFlag{Name: "disks", Usage: "remove the disks as well; this cannot be undone", DisableDefaultText: true},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask", DisableDefaultText: true},
		),
		Action: p.delete,
	}
}

func (p *program) delete(c *cli.Context) error {
	h, m, err := p.named(c, (*host.Host).FindAny)
	if err != nil {
		return err
	}
	full := m.FullName()
	if m.Running() {
		return fmt.Errorf("%s runs (%s): stop it first, with %s", full, m.Status, p.hint(c, "stop", full))
	}
	if units := h.Enabled(m.Namespace, m.Name); len(units) > 0 {
		return fmt.Errorf("%s is started by %s: disable it first, with %s", full, units[0], p.hint(c, "disable", full))
	}
	options := host.DeleteOptions{Disks: c.Bool("disks")}
	if !c.Bool("yes") {
		options.Confirm = func(precious []host.File) error { return p.confirm(full, m.Name, precious) }
	}
	kept, err := h.DeleteStopped(m, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s is deleted.\n", full)
	for _, f := range kept {
		about := textout.InWords(f.Size)
		if f.Holds != "" {
			about = f.Holds + ", " + about
		}
		fmt.Fprintf(p.stdout, "kept: %s (%s)\n", textout.Cell(filepath.Join(m.Data, f.Name)), about)
	}
	return nil
}

// confirm asks for the machine's name before its disks and identity are removed.
func (p *program) confirm(full, name string, precious []host.File) error {
	if !isTerminal(p.stdin) {
		return errors.New("--disks asks on a terminal, and the standard input is none: say --yes")
	}
	var disks int
	var total int64
	var identity []string
	for _, f := range precious {
		if f.Kind == host.FileDisk {
			disks++
			total += f.Size
		}
		if f.Holds != "" && !slices.Contains(identity, f.Holds) {
			identity = append(identity, f.Holds)
		}
	}
	and := ""
	if len(identity) > 0 {
		and = ", and what belongs to them (" + strings.Join(identity, ", ") + ")"
	}
	fmt.Fprintf(p.stderr, "%s of %s, %s%s would be gone for ever. Type the machine's name to go on: ", textout.Counted(disks, "disk"), full, textout.InWords(total), and)
	answer, err := bufio.NewReader(p.stdin).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != name && strings.TrimSpace(answer) != full {
		return errors.New("nothing was deleted")
	}
	return nil
}
