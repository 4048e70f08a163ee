package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) convertCommand() *cli.Command {
	return &cli.Command{
		Name:      "convert",
		Usage:     "print the machines of KubeVirt and Deckhouse Virtualization, with their disks, images, classes and operations, as manifests of this system",
		ArgsUsage: "FILE...",
		Description: "Each thing that means something else here, or nothing, is a note on the standard error:\n\n" +
			"  FILE:LINE: KIND NAMESPACE/NAME: FIELD: note: what becomes of it\n\n" +
			"Instance types and data volumes are looked up among the files. What is of this system\n" +
			"is printed as it is understood. validate, render, run, changes and diff take such\n" +
			"files, too; on one host a machine has disks of its own instead of those beside it.\n\n" +
			"Example:\n" +
			"  vmop-cli convert kubevirt-vm.yaml > vm.yaml",
		Flags:  selectFlags(),
		Action: p.convert,
	}
}

func (p *program) convert(c *cli.Context) error {
	files, err := needFiles(c)
	if err != nil {
		return err
	}
	objects, said, err := p.load(files, selected(c), spec.Options{})
	p.report(said)
	if err != nil {
		return err
	}
	n := 0
	for i := range objects {
		o := &objects[i]
		if o.Typed == nil {
			continue
		}
		text, err := spec.Marshal(o.Typed)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		if n++; n > 1 {
			fmt.Fprintln(p.stdout, "---")
		}
		if _, err := p.stdout.Write(text); err != nil {
			return err
		}
	}
	switch {
	case wrong(said):
		return errSilent
	case n == 0:
		return noMachine(files, selected(c), objects)
	}
	return nil
}
