package main

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/vmop/sdk/vmop"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// runnable finds what a valid manifest requests and neither the runner nor any QEMU supports.
func runnable(o *spec.Object) []spec.Problem {
	if o.VirtualMachine == nil {
		return nil
	}
	_, err := vmop.Render(o.VirtualMachine, vmop.RenderOptions{})
	if err == nil || errors.Is(err, vmop.ErrTemplate) {
		return nil
	}
	return problemsOf(o, err)
}

// problemsOf locates the errors of a rendering in the file.
func problemsOf(o *spec.Object, err error) []spec.Problem {
	var out []spec.Problem
	for _, e := range leaves(err) {
		switch e := e.(type) {
		case *machineconfig.Error:
			if !strings.HasPrefix(e.Field, "spec.") { // of the command line
				out = append(out, spec.Problem{File: "vmop-cli", Message: strings.Replace(e.Error(), "local.disks: ", "--disk: ", 1)})
				continue
			}
			out = append(out, o.Problem(e.Field, withFlag(e.Reason)))
		case *host.GivenError:
			out = append(out, o.Problem(e.Field, e.Reason()+elsewhere(e)))
		case *runnerconfig.Error:
			out = append(out, o.Problem("", "runner configuration: "+e.Error()))
		case *qemucmd.Error:
			out = append(out, o.Problem("", "QEMU: "+e.Error()))
		default:
			out = append(out, o.Problem("", e.Error()))
		}
	}
	return out
}

// told prints the problems in an error about a manifest, and returns the rest.
func (p *program) told(o *spec.Object, err error) error {
	if !errors.As(err, new(*machineconfig.Error)) && !errors.As(err, new(*host.GivenError)) {
		return err
	}
	p.report(asFindings(output.SeverityError, problemsOf(o, err)...))
	return errSilent
}

// elsewhere describes how to provide a file that the user has to provide.
func elsewhere(e *host.GivenError) string {
	switch {
	case e.Repository != "" && errors.Is(e.Err, fs.ErrNotExist):
		return "; name the folder that has it with --image-repository DIR"
	case e.Disk != "":
		return "; another one is named with --disk " + e.Disk + "=PATH"
	}
	return ""
}

func withFlag(reason string) string {
	i := strings.LastIndex(reason, " ") + 1
	if !strings.HasSuffix(reason, "=PATH") {
		return reason
	}
	return reason[:i] + "--disk " + reason[i:]
}

// leaves splits a joined error. A wrapping message stays with it unless its type has all.
func leaves(err error) []error {
	if typed(err) {
		return []error{err}
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var out []error
		for _, inner := range e.Unwrap() {
			out = append(out, leaves(inner)...)
		}
		return out
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			if found := leaves(inner); len(found) > 1 || typed(found[0]) {
				return found
			}
		}
	}
	return []error{err}
}

// typed reports whether an error names its field itself.
func typed(err error) bool {
	switch err.(type) {
	case *machineconfig.Error, *host.GivenError, *runnerconfig.Error, *qemucmd.Error:
		return true
	}
	return false
}
