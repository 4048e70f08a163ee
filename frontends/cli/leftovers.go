package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) leftoversCommand() *cli.Command {
	return &cli.Command{
		Name:      "leftovers",
		Usage:     "list what deleted machines have left in a cluster",
		ArgsUsage: " ",
		Description: "Lists the volume claims and display secrets of machines that are gone: those that have\n" +
			"the operator's labels and names and that no machine mentions and no pod uses. Nothing is\n" +
			"deleted; the commands that would do so are printed, and the data goes with the claims.\n" +
			"A machine that is made again under its name has them again. spec.deletionPolicy: Delete\n" +
			"in a manifest has a machine's own claims deleted with it.\n\n" +
			"Examples:\n" +
			"  vmop-cli leftovers -n shop\n" +
			"  vmop-cli leftovers -A -o json",
		Flags: clusterFlags(
			outputFlag("", formatTable),
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "in all namespaces", DisableDefaultText: true},
		),
		Action: p.leftovers,
	}
}

type leftover struct {
	Namespace string
	Kind      string
	Name      string
	Machine   string
	Size      int64
	Created   time.Time
	// Delete is the command that would delete it.
	Delete string
}

func (p *program) leftovers(c *cli.Context) error {
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return err
	}
	if c.NArg() > 0 {
		return usagef(c, "leftovers takes no arguments, and found %q", c.Args().First())
	}
	client, err := p.connect(c)
	if err != nil {
		return err
	}
	namespace := client.Namespace
	if c.Bool("all-namespaces") {
		namespace = ""
	}
	ctx, cancel := bounded(c, requestTimeout, "the API server did not answer")
	defer cancel()
	found, failed := client.Remains(ctx, namespace)
	if found == nil && failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out := make([]leftover, len(found))
	for i, r := range found {
		out[i] = leftover{
			Namespace: r.Namespace, Kind: r.Kind, Name: r.Name, Machine: r.Machine, Created: r.Created.Time,
			Delete: p.kubectl(c, "delete", "-n", r.Namespace, resourceName(r)),
		}
		if r.Size != nil {
			out[i].Size = spec.Bytes(*r.Size)
		}
	}
	if forPrograms(format) {
		if err := printList(p, format, printedLeftovers(out)); err != nil {
			return err
		}
		return failed
	}
	if len(out) == 0 {
		if failed == nil {
			p.note("Nothing is left of deleted machines.")
		}
		return failed
	}
	now := time.Now()
	rows := make([][]string, len(out))
	for i, l := range out {
		has := textout.None
		if l.Size > 0 {
			has = textout.Size(l.Size)
		}
		rows[i] = []string{l.Namespace, l.Kind, l.Name, l.Machine, has, textout.Age(now, l.Created)}
	}
	if err := textout.Table(p.stdout, []string{"NAMESPACE", "KIND", "NAME", "MACHINE", "SIZE", "AGE"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "\nTo delete what a machine has left, with its data:")
	for i := 0; i < len(found); {
		first := &found[i]
		command := []string{"delete", "-n", first.Namespace}
		for ; i < len(found) && found[i].Namespace == first.Namespace && found[i].Machine == first.Machine; i++ {
			command = append(command, resourceName(found[i]))
		}
		fmt.Fprintln(p.stdout, textout.Printable("  "+p.kubectl(c, command...)))
	}
	return failed
}

func resourceName(r cluster.Remainder) string {
	if r.Kind == names.KindSecret {
		return "secret/" + r.Name
	}
	return "pvc/" + r.Name
}

func printedLeftovers(found []leftover) []output.Leftover {
	out := make([]output.Leftover, len(found))
	for i, l := range found {
		out[i] = output.Leftover{
			ObjectMeta: named(l.Namespace, l.Name), ObjectKind: l.Kind, VirtualMachineName: l.Machine, Size: known(l.Size), DeleteCommand: l.Delete,
		}
		out[i].CreationTimestamp = metav1.NewTime(l.Created)
	}
	return out
}
