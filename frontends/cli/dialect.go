package main

import (
	"errors"

	"github.com/vmop/sdk/vmop/dialect"
	"github.com/vmop/sdk/vmop/spec"
)

// translated adds to the objects of files what machines of other systems among
// them are in our terms, with what is wrong with those. Each thing that means
// something else here, or nothing, is told.
func (p *program) translated(objects []spec.Object, opts spec.Options) ([]spec.Object, []spec.Problem) {
	t, err := dialect.Translate(objects)
	var problems []spec.Problem
	var bad *spec.LoadError
	if errors.As(err, &bad) {
		problems = bad.Problems
	}
	for _, m := range t.Machines {
		for _, note := range m.Notes {
			p.note("%v", noted(note))
		}
		o := m.Object
		// What is kept of a machine, so that its name is enough later, is in our terms.
		if text, err := spec.Marshal(m.VirtualMachine); err != nil {
			problems = append(problems, o.Problem("", err.Error()))
		} else {
			o.Raw = text
		}
		if opts.Validate {
			problems = append(problems, o.Problems(spec.Validate(m.VirtualMachine))...)
		}
		if opts.Default {
			spec.Default(m.VirtualMachine)
		}
		o.Typed, o.VirtualMachine, o.Name = m.VirtualMachine, m.VirtualMachine, m.VirtualMachine.Name
		objects = append(objects, o)
	}
	for _, note := range t.LeftOut {
		p.note("%v", noted(note))
	}
	return objects, problems
}

func noted(n spec.Problem) spec.Problem {
	n.Message = "note: " + n.Message
	return n
}

// understood are the kinds of machines that can be read.
func understood() []string {
	return append([]string{spec.KindVirtualMachine + "." + spec.GroupName}, dialect.Kinds()...)
}
