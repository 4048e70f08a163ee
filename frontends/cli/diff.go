package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "say what applying manifests to a cluster would change, and what of it needs a restart",
		ArgsUsage: "FILE...",
		Description: "Asks the API server what kubectl apply would make of each machine, without doing it,\n" +
			"and says of each difference whether a machine that runs gets it at once (live), at\n" +
			"its next start (restart), or not at all because it contradicts what exists (never).\n" +
			"A machine that is not there yet is one change. Fields that the files do not have stay\n" +
			"as they are, unless an earlier kubectl apply set them.\n\n" +
			"Examples:\n" +
			"  vmop-cli diff web.yaml\n" +
			"  vmop-cli diff --context lab *.yaml -o json",
		Flags: append(clusterFlags(),
			&cli.StringFlag{Name: "name", Usage: "only objects of this `NAME`"},
			outputFlag("", formatTable),
		),
		Action: p.diff,
	}
}

// exitDiffError is the exit code of an error of diff, whose 1 means a difference, as with kubectl
// diff.
const exitDiffError = 3

type difference struct {
	Namespace string
	Name      string
	// New reports that the machine does not exist yet.
	New     bool
	Running bool
	Changes []changes.Change
}

func (p *program) diff(c *cli.Context) error {
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return err
	}
	files, err := needFiles(c)
	if err != nil {
		return err
	}
	found, err := p.differences(c, files)
	if err != nil {
		return &exitStatus{code: exitDiffError, err: err}
	}
	if err := p.writeDifferences(format, found); err != nil {
		return &exitStatus{code: exitDiffError, err: err}
	}
	for _, d := range found {
		if d.New || len(d.Changes) > 0 {
			return errSilent
		}
	}
	return nil
}

func (p *program) differences(c *cli.Context, files []string) ([]difference, error) {
	objects, err := p.machinesAmong(files, selection{name: c.String("name"), plain: true})
	if err != nil {
		return nil, err
	}
	client, err := p.connect(c)
	if err != nil {
		return nil, err
	}
	out := make([]difference, len(objects))
	for i := range objects {
		manifest, err := asWritten(&objects[i], client.Namespace, c.String("namespace"))
		if err != nil {
			return nil, err
		}
		if out[i], err = p.difference(c, client, manifest); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p *program) difference(c *cli.Context, client *cluster.Client, manifest *unstructured.Unstructured) (difference, error) {
	ctx, cancel := bounded(c, requestTimeout, "the API server did not answer")
	defer cancel()
	proposal, err := client.Propose(ctx, manifest)
	if err != nil {
		return difference{}, err
	}
	d := difference{Namespace: manifest.GetNamespace(), Name: manifest.GetName(), New: proposal.Before == nil, Changes: []changes.Change{}}
	if d.New {
		return d, nil
	}
	d.Running = proposal.Before.Status.Created
	found, err := client.Foresee(ctx, proposal)
	d.Changes = append(d.Changes, found...)
	if err != nil && ctx.Err() != nil {
		return difference{}, err
	}
	if err != nil {
		p.note("%s runs with what cannot be read; its manifests are compared alone: %v", fullName(d.Namespace, d.Name), err)
	}
	return d, nil
}

// asWritten returns the manifest without the library's defaults: the API server has its own.
func asWritten(o *spec.Object, namespace, demanded string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(o.Raw, &u.Object); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", o.File, o.Line, err)
	}
	switch n := u.GetNamespace(); {
	case n == "":
		u.SetNamespace(namespace)
	case demanded != "" && demanded != n:
		return nil, fmt.Errorf("%s:%d: the machine %s is in namespace %s, and --namespace says %s", o.File, o.Line, o.Name, n, demanded)
	}
	return u, nil
}

func (p *program) writeDifferences(format string, found []difference) error {
	if forPrograms(format) {
		out := make([]output.Changes, len(found))
		for i, d := range found {
			out[i] = printedChanges(d.Namespace, d.Name, d.Changes)
			out[i].New, out[i].Running = d.New, d.Running
		}
		return printList(p, format, out)
	}
	var rows [][]string
	for _, d := range found {
		name := fullName(d.Namespace, d.Name)
		if d.New {
			rows = append(rows, []string{name, textout.None, "create", textout.None, textout.None, "new", "there is no such machine yet"})
		}
		for _, f := range d.Changes {
			applied := string(f.Applied)
			if !d.Running && f.Applied == changes.AppliedRestart {
				applied = "next start"
			}
			rows = append(rows, []string{name, f.Path, f.Operation, changed(f.Path, f.OldValue), changed(f.Path, f.NewValue), applied, f.Reason})
		}
	}
	if len(rows) == 0 {
		p.note("No changes.")
		return nil
	}
	return textout.Table(p.stdout, []string{"MACHINE", "PATH", "OPERATION", "OLD", "NEW", "APPLIED", "REASON"}, rows)
}
