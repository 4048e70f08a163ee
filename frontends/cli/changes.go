package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) changesCommand() *cli.Command {
	return &cli.Command{
		Name:      "changes",
		Usage:     "say what waits for a restart of a machine, or what differs between two manifests",
		ArgsUsage: "[NAME | OLD NEW]",
		Description: "With a NAME: the changes that a machine which runs gets at its next start only, of this host\n" +
			"or of a cluster (--cluster); without one, those of all machines of this host. With two files it compares two manifests of one machine. For\n" +
			"each difference it says whether a machine that runs gets it at once (live), at its next start\n" +
			"(restart), or not at all because it contradicts what exists (never). The table does not\n" +
			"show the documents for cloud-init, which often hold passwords. Instead of OLD the NAME of a\n" +
			"machine of this host is its present manifest. Files are compared for this host, where nothing\n" +
			"of a volume claim matters but its size, if it has the machine or --local says so, and else for\n" +
			"a cluster, for which --cluster compares them in any case.\n\n" +
			"Examples:\n" +
			"  vmop-cli changes\n" +
			"  vmop-cli changes web\n" +
			"  vmop-cli changes --cluster -n shop web\n" +
			"  vmop-cli changes vm.yaml vm-new.yaml\n" +
			"  vmop-cli changes web vm-new.yaml\n" +
			"  kubectl get vm web -o yaml | vmop-cli changes - web.yaml -o json",
		Flags: eitherFlags(append(selectFlags(), dataDirFlag(),
			&cli.BoolFlag{Name: "local", Usage: "for this host, where a disk is an image and no volume claim, also of a machine that it does not have", DisableDefaultText: true},
			outputFlag("", formatTable),
		)...),
		Action: p.changes,
	}
}

func (p *program) changes(c *cli.Context) error {
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return err
	}
	switch {
	case c.NArg() == 1 && c.Args().First() != "-":
		return p.awaiting(c, format)
	case c.NArg() == 0 && !inCluster(c):
		return p.allAwaiting(c, format)
	case c.NArg() != 2:
		return usagef(c, "want the NAME of a machine, or two files, OLD and NEW, and found %s", arguments(c.NArg()))
	case c.String("kubeconfig") != "" || c.String("context") != "":
		return usagef(c, "--kubeconfig and --context are for the NAME of a machine; diff compares a file with a cluster")
	case inCluster(c) && c.Bool("local"):
		return usagef(c, "--cluster and --local: want one of them")
	}
	if c.Args().Get(0) == "-" && c.Args().Get(1) == "-" {
		return usagef(c, "only one of OLD and NEW can be the standard input")
	}
	before, err := p.oldManifest(c)
	if err != nil {
		return err
	}
	after, err := p.machine(c, c.Args().Slice()[1:], p.onHost(c))
	if err != nil {
		return err
	}
	if a, b := fullName(before.Namespace, before.Name), fullName(after.Namespace, after.Name); a != b {
		return fmt.Errorf("%s has the machine %s and %s has %s: want two manifests of one machine", before.File, a, after.File, b)
	}
	here, err := p.isHere(c, &before)
	if err != nil {
		return err
	}
	found := vmop.Changes(before.VirtualMachine, after.VirtualMachine)
	if here {
		found = host.Changes(before.VirtualMachine, after.VirtualMachine)
	}
	return p.printChanges(namespaceOr(before.Namespace), before.Name, found, format, "No changes.")
}

// oldManifest reads OLD: a file or, if there is none of that name, a machine of this host.
func (p *program) oldManifest(c *cli.Context) (spec.Object, error) {
	old := c.Args().First()
	if _, err := os.Stat(old); errors.Is(err, fs.ErrNotExist) && old != "-" && !inCluster(c) {
		h, err := p.host(c)
		if err != nil {
			return spec.Object{}, err
		}
		m, err := h.Find(old, c.String("namespace"))
		if err == nil {
			return m.Object()
		}
		if !errors.Is(err, host.ErrNotFound) {
			return spec.Object{}, err
		}
	}
	return p.machine(c, []string{old}, p.onHost(c))
}

// onHost returns a function that reports whether a machine is one of this host, as for all
// commands: unless a cluster is requested. A machine unknown here may be a cluster's unless --local
// is given.
func (p *program) onHost(c *cli.Context) func(*spec.Object) (bool, error) {
	return func(o *spec.Object) (bool, error) {
		if inCluster(c) || c.Bool("local") {
			return c.Bool("local"), nil
		}
		h, err := p.host(c)
		if err != nil {
			return false, err
		}
		_, err = h.Machine(o.Namespace, o.Name)
		if errors.Is(err, host.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}
}

func (p *program) isHere(c *cli.Context, o *spec.Object) (bool, error) {
	here, err := p.onHost(c)(o)
	if here && !c.Bool("local") {
		p.note("%s is a machine of this host, for which this is; --cluster compares for a cluster.", fullName(o.Namespace, o.Name))
	}
	return here, err
}

func (p *program) awaiting(c *cli.Context, format string) error {
	if c.Bool("local") && inCluster(c) {
		return usagef(c, "--cluster and --local: want one of them")
	}
	const nothing = "No changes wait for a restart."
	if !inCluster(c) {
		m, err := p.find(c, c.Args().First())
		if err != nil {
			return fmt.Errorf("%w (two files are compared by changes OLD NEW)", err)
		}
		found, err := m.Awaiting()
		if err != nil {
			return err
		}
		if m.Running() {
			return p.printChanges(m.Namespace, m.Name, found, format, nothing)
		}
		return p.printChanges(m.Namespace, m.Name, found, format, m.FullName()+" does not run: all changes take effect with its next start.")
	}
	return p.withMachine(c, func(_ context.Context, _ *cluster.Client, vm *spec.VirtualMachine) error {
		if vm.Status.ObservedGeneration < vm.Generation {
			p.note("The operator has not acted upon the last change yet.")
		}
		var found []changes.Change
		for _, a := range vm.Status.RestartAwaitingChanges {
			f := changes.Change{Operation: a.Operation, Path: a.Path, Applied: changes.AppliedRestart, Reason: a.Message}
			if a.CurrentValue != nil {
				f.OldValue = a.CurrentValue.Raw
			}
			if a.DesiredValue != nil {
				f.NewValue = a.DesiredValue.Raw
			}
			found = append(found, f)
		}
		// Changes of the pod or the runner alone have no path.
		if w := spec.FindCondition(vm.Status.Conditions, spec.ConditionAwaitingRestart); w != nil && w.Status == metav1.ConditionTrue {
			p.note("%s", w.Message)
		}
		return p.printChanges(vm.Namespace, vm.Name, found, format, nothing)
	})
}

type waiting struct {
	Namespace string
	Name      string
	changes.Change
}

func (p *program) allAwaiting(c *cli.Context, format string) error {
	h, err := p.host(c)
	if err != nil {
		return err
	}
	machines, err := h.List(host.ListOptions{Namespace: c.String("namespace")})
	if err != nil {
		return err
	}
	all, listed := []waiting{}, []output.Changes{}
	for _, m := range machines {
		found, err := m.Awaiting()
		if err != nil { // the others are printed in any case
			p.note("%v", err)
		}
		if len(found) > 0 {
			listed = append(listed, printedChanges(m.Namespace, m.Name, found))
		}
		for _, f := range found {
			all = append(all, waiting{Namespace: m.Namespace, Name: m.Name, Change: f})
		}
	}
	if forPrograms(format) {
		return printList(p, format, listed)
	}
	if len(all) == 0 {
		p.note("No changes wait for a restart of a machine of this host.")
		return nil
	}
	rows := make([][]string, len(all))
	for i, f := range all {
		rows[i] = []string{f.Namespace, f.Name, f.Path, f.Operation, changed(f.Path, f.OldValue), changed(f.Path, f.NewValue), f.Reason}
	}
	return textout.Table(p.stdout, []string{"NAMESPACE", "NAME", "PATH", "OPERATION", "OLD", "NEW", "REASON"}, rows)
}

func (p *program) printChanges(namespace, name string, found []changes.Change, format, nothing string) error {
	if forPrograms(format) {
		return printList(p, format, []output.Changes{printedChanges(namespace, name, found)})
	}
	if len(found) == 0 {
		p.note("%s", nothing)
		return nil
	}
	rows := make([][]string, len(found))
	for i, f := range found {
		rows[i] = []string{f.Path, f.Operation, changed(f.Path, f.OldValue), changed(f.Path, f.NewValue), string(f.Applied), f.Reason}
	}
	return textout.Table(p.stdout, []string{"PATH", "OPERATION", "OLD", "NEW", "APPLIED", "REASON"}, rows)
}

const maxCell = 40

func changed(path string, v json.RawMessage) string {
	switch {
	case v == nil:
		return textout.None
	case changes.Confidential(path):
		return "(not shown)"
	}
	s := []rune(string(v))
	if len(s) > maxCell {
		return string(s[:maxCell]) + "…"
	}
	return string(s)
}

func printedChanges(namespace, name string, found []changes.Change) output.Changes {
	out := output.Changes{ObjectMeta: named(namespace, name), Changes: []output.Change{}}
	for _, c := range found {
		out.Changes = append(out.Changes, output.Change{AwaitingChange: c.Awaiting(), Applied: string(c.Applied)})
	}
	return out
}
