package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) validateCommand() *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "say what is wrong with manifests",
		ArgsUsage: "FILE...",
		Description: "Checks everything that the API server would check, and what a runner needs beyond it.\n" +
			"Each problem is one line on the standard error:\n\n" +
			"  FILE:LINE: KIND NAMESPACE/NAME: FIELD: what is wrong\n\n" +
			"or with -o json or yaml an item of a list on the standard output, as warnings and notes are;\n" +
			"the list is empty if there is nothing to say.\n" +
			"Machines are looked at with their class (VirtualMachineClass) if that is among the files.\n" +
			"Objects of other kinds are left alone.\n\n" +
			"Examples:\n" +
			"  vmop-cli validate vm.yaml pool.yaml\n" +
			"  kubectl kustomize . | vmop-cli validate -\n" +
			"  vmop-cli validate vm.yaml -o json",
		Flags: append(selectFlags(), outputFlag("", formatText),
			&cli.BoolFlag{Name: "lenient", Usage: "unknown fields are warnings, as they are dropped by the API server", DisableDefaultText: true},
		),
		Action: p.validate,
	}
}

func (p *program) validate(c *cli.Context) error {
	format, err := outputFormat(c, formatText)
	if err != nil {
		return err
	}
	files, err := needFiles(c)
	if err != nil {
		return err
	}
	objects, said, err := p.load(files, selected(c), spec.Options{Default: true, Validate: true, Lenient: c.Bool("lenient")})
	for i := range objects {
		said = append(said, asFindings(output.SeverityWarning, objects[i].Warnings...)...)
		if vm := objects[i].VirtualMachine; vm != nil && vm.Spec.VirtualMachineClassName != "" && !foreign(&objects[i]) { // which the translation reports
			said = append(said, asFindings(output.SeverityNote, objects[i].Problem("spec.virtualMachineClassName", "the class "+vm.Spec.VirtualMachineClassName+" is not among the files, and was not looked at"))...)
		}
		said = append(said, asFindings(output.SeverityError, runnable(&objects[i])...)...)
	}
	if forPrograms(format) {
		err = errors.Join(printList(p, format, printedManifestFindings(said)), err)
	} else {
		p.report(said)
	}
	if err != nil {
		return err
	}
	if wrong(said) {
		return errSilent
	}
	n := 0
	for i := range objects {
		if objects[i].Typed != nil {
			n++
		}
	}
	if n == 0 {
		return errors.New("nothing to validate: " + noMachine(files, selected(c), objects).Error())
	}
	if !forPrograms(format) {
		fmt.Fprintf(p.stdout, "%d valid\n", n)
	}
	return nil
}
