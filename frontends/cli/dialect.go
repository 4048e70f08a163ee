package main

import (
	"errors"

	"github.com/vmop/sdk/vmop/dialect"
	"github.com/vmop/sdk/vmop/spec"
)

// translated adds to the objects of files what machines of other systems among
// them, and their classes, are in our terms, with what is wrong with those. Each thing
// that means something else here, or nothing, is told of what is selected.
func (p *program) translated(objects []spec.Object, s selection, opts spec.Options) ([]spec.Object, []spec.Problem) {
	t, err := dialect.Translate(objects)
	var problems []spec.Problem
	var bad *spec.LoadError
	if errors.As(err, &bad) {
		problems = bad.Problems
	}
	add := func(o spec.Object, typed spec.TypedObject, notes []spec.Problem) *spec.Object {
		if s.matches(o.Namespace, o.Name) {
			for _, note := range notes {
				p.note("%v", noted(note))
			}
		}
		// What is kept of a machine, so that its name is enough later, is in our terms.
		if text, err := spec.Marshal(typed); err != nil {
			problems = append(problems, o.Problem("", err.Error()))
		} else {
			o.Raw = text
		}
		o.Typed, o.Name = typed, typed.GetName()
		objects = append(objects, o)
		return &objects[len(objects)-1]
	}
	for _, m := range t.Machines {
		o := add(m.Object, m.VirtualMachine, m.Notes)
		o.VirtualMachine = m.VirtualMachine
		if opts.Validate {
			problems = append(problems, o.Problems(spec.Validate(m.VirtualMachine))...)
		}
		if opts.Default {
			spec.Default(m.VirtualMachine)
		}
	}
	for _, c := range t.Classes {
		o := add(c.Object, c.VirtualMachineClass, c.Notes)
		if opts.Validate {
			problems = append(problems, o.Problems(spec.ValidateClass(c.VirtualMachineClass))...)
		}
	}
	for _, note := range t.LeftOut {
		if s.matches(note.Namespace, note.Name) {
			p.note("%v", noted(note))
		}
	}
	return objects, problems
}

// foreign reports whether an object was translated.
func foreign(o *spec.Object) bool {
	return o.Typed != nil && o.APIVersion != spec.GroupVersion().String()
}

func noted(n spec.Problem) spec.Problem {
	n.Message = "note: " + n.Message
	return n
}

// understood are the kinds of machines that can be read.
func understood() []string {
	return append([]string{spec.KindVirtualMachine + "." + spec.GroupName}, dialect.Kinds()...)
}
