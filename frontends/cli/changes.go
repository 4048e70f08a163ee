package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/reconcile/changes"
)

func (p *program) changesCommand() *cli.Command {
	return &cli.Command{
		Name:      "changes",
		Usage:     "say what differs between two manifests of a machine, and what needs a restart",
		ArgsUsage: "OLD NEW",
		Description: "Compares two manifests of one machine. For each difference it says whether a machine\n" +
			"that runs gets it at once (live), at its next start (restart), or not at all because\n" +
			"it contradicts what exists (never). The table does not show the documents for\n" +
			"cloud-init, which often hold passwords. It is about a cluster; --local is about this\n" +
			"host, where nothing of a volume claim matters but its size.\n\n" +
			"Examples:\n" +
			"  vmop-cli changes vm.yaml vm-new.yaml\n" +
			"  kubectl get vm web -o yaml | vmop-cli changes - web.yaml -o json",
		Flags: append(selectFlags(),
			&cli.BoolFlag{Name: "local", Usage: "for a machine of this host, where a disk is an image and no volume claim", DisableDefaultText: true},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: formatTable, Usage: "`FORMAT`: table or json"},
		),
		Action: p.changes,
	}
}

func (p *program) changes(c *cli.Context) error {
	format := c.String("output")
	if format != formatTable && format != formatJSON {
		return usagef(c, "--output %q: want table or json", format)
	}
	if c.NArg() != 2 {
		return usagef(c, "want two files, OLD and NEW, and found %d", c.NArg())
	}
	if c.Args().Get(0) == "-" && c.Args().Get(1) == "-" {
		return usagef(c, "only one of OLD and NEW can be the standard input")
	}
	before, err := p.machine(c, c.Args().Slice()[:1])
	if err != nil {
		return err
	}
	after, err := p.machine(c, c.Args().Slice()[1:])
	if err != nil {
		return err
	}
	if a, b := fullName(before.Namespace, before.Name), fullName(after.Namespace, after.Name); a != b {
		return fmt.Errorf("%s has the machine %s and %s has %s: want two manifests of one machine", before.File, a, after.File, b)
	}
	found := changes.Between(before.VirtualMachine, after.VirtualMachine, changes.Options{})
	if c.Bool("local") {
		found = host.Changes(before.VirtualMachine, after.VirtualMachine)
	}
	if format == formatJSON {
		if found == nil {
			found = []changes.Change{}
		}
		return writeJSON(p.stdout, found)
	}
	if len(found) == 0 {
		p.note("No changes.")
		return nil
	}
	rows := make([][]string, len(found))
	for i, f := range found {
		rows[i] = []string{f.Path, f.Operation, changed(f.Path, f.OldValue), changed(f.Path, f.NewValue), string(f.Applied), f.Reason}
	}
	return table(p.stdout, []string{"PATH", "OPERATION", "OLD", "NEW", "APPLIED", "REASON"}, rows)
}

// maxCell is how much of a value the table shows, in characters.
const maxCell = 40

// changed shows a value in a cell.
func changed(path string, v json.RawMessage) string {
	switch {
	case v == nil:
		return none
	case strings.HasPrefix(path, "spec.cloudInit"):
		return "(not shown)"
	}
	s := []rune(string(v))
	if len(s) > maxCell {
		return string(s[:maxCell]) + "…"
	}
	return string(s)
}
