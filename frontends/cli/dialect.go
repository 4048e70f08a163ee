package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/dialect"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

// translated adds to the objects the translations of other systems' machines, classes and
// operations. It reports problems of all of them, and for selected ones also what is unsupported or
// has another meaning here.
func translated(objects []spec.Object, s selection, opts spec.Options) ([]spec.Object, []finding) {
	t, err := dialect.Translate(objects)
	var said []finding
	problems := func(found ...spec.Problem) { said = append(said, asFindings(output.SeverityError, found...)...) }
	var bad *spec.LoadError
	if errors.As(err, &bad) {
		problems(bad.Problems...)
	}
	add := func(o spec.Object, typed spec.TypedObject, notes []spec.Problem) *spec.Object {
		if s.matches(o.Namespace, o.Name) {
			said = append(said, asFindings(output.SeverityNote, notes...)...)
		}
		// The stored machine is in our terms, so that its name suffices later.
		if text, err := spec.Marshal(typed); err != nil {
			problems(o.Problem("", err.Error()))
		} else {
			o.Raw = text
		}
		o.Typed, o.Name = typed, typed.GetName()
		objects = append(objects, o)
		return &objects[len(objects)-1]
	}
	for _, made := range t.All() {
		o := add(made.Object, made.Typed, made.Notes)
		o.VirtualMachine, _ = made.Typed.(*spec.VirtualMachine)
		for _, k := range spec.Kinds() { // they leave other types alone
			if opts.Validate {
				problems(o.Problems(k.Validate(made.Typed))...)
			}
			if opts.Default {
				k.Default(made.Typed)
			}
		}
	}
	for _, note := range t.LeftOut {
		if s.matches(note.Namespace, note.Name) {
			said = append(said, asFindings(output.SeverityNote, note)...)
		}
	}
	return objects, said
}

// understood lists the supported kinds by group: those of this system, those that are translated,
// and those that machines refer to.
func understood() string {
	kinds := append(dialect.Kinds(), dialect.Companions()...)
	for i, k := range spec.Kinds() {
		kinds = slices.Insert(kinds, i, k.Name+"."+spec.GroupName)
	}
	var groups []string
	of := map[string][]string{}
	for _, k := range kinds {
		name, group, _ := strings.Cut(k, ".")
		if of[group] == nil {
			groups = append(groups, group)
		}
		of[group] = append(of[group], name)
	}
	for i, g := range groups {
		groups[i] = strings.Join(of[g], ", ") + " of " + g
	}
	return strings.Join(groups, "; ")
}
