package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

// maxInput limits a manifest file, in bytes: many times what the API server accepts for one object.
const maxInput = 64 << 20

const stdinName = "<stdin>"

func (p *program) read(file string) (name string, data []byte, err error) {
	r := p.stdin
	name = stdinName
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return file, nil, err
		}
		defer f.Close()
		r, name = f, file
	}
	data, err = io.ReadAll(io.LimitReader(r, maxInput+1))
	switch {
	case err != nil:
		if path := (*fs.PathError)(nil); errors.As(err, &path) { // which names the file
			return name, nil, err
		}
		return name, nil, fmt.Errorf("read %s: %w", name, err)
	case len(data) > maxInput:
		return name, nil, fmt.Errorf("read %s: more than %s, that is no manifest", name, textout.Size(maxInput))
	}
	return name, data, nil
}

// load reads the selected objects of all files, with all findings. The error is about a file that
// cannot be read.
func (p *program) load(files []string, s selection, opts spec.Options) ([]spec.Object, []finding, error) {
	var objects []spec.Object
	var said []finding
	problems := func(found ...spec.Problem) { said = append(said, asFindings(output.SeverityError, found...)...) }
	var errs []error
	seen := map[string]bool{}
	for _, file := range files {
		if seen[file] {
			continue
		}
		seen[file] = true
		name, data, err := p.read(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found, err := spec.Load(name, data, opts)
		var bad *spec.LoadError
		if errors.As(err, &bad) {
			problems(bad.Problems...)
			said = append(said, asFindings(output.SeverityWarning, bad.Warnings...)...)
		} else if err != nil {
			errs = append(errs, err)
		}
		objects = append(objects, found...)
	}
	unselected := func(o spec.Object) bool { return !s.matches(o.Namespace, o.Name) }
	problems(duplicates(slices.DeleteFunc(slices.Clone(objects), unselected))...)
	// Objects that a machine refers to, and its class, count even if not selected.
	objects, found := translated(objects, s, opts)
	said = append(said, found...)
	classes, beside := classesAmong(objects), besideAmong(objects)
	objects = slices.DeleteFunc(objects, unselected)
	if opts.Default && !s.plain {
		said = append(said, inline(objects, classes)...)
	}
	if opts.Default && s.here != nil {
		found, err := ownDisks(objects, beside, s.here)
		said, errs = append(said, found...), append(errs, err)
	}
	said = slices.DeleteFunc(said, func(f finding) bool {
		return f.Name != "" && f.Kind != spec.KindClass && !s.matches(f.Namespace, f.Name) // without a name, it may concern any object
	})
	return objects, said, errors.Join(errs...)
}

// duplicates finds objects that occur twice: a cluster would have the later one only.
func duplicates(objects []spec.Object) []spec.Problem {
	first := map[[4]string]*spec.Object{}
	var out []spec.Problem
	for i := range objects {
		o := &objects[i]
		if o.Name == "" {
			continue // generateName, or of another group
		}
		group, _, _ := strings.Cut(o.APIVersion, "/")
		key := [4]string{group, o.Kind, namespaceOr(o.Namespace), o.Name}
		if before := first[key]; before != nil {
			out = append(out, o.Problem("", "is a duplicate of the one at "+before.Position("")))
			continue
		}
		first[key] = o
	}
	return out
}

// machinesAmong returns the machines among the objects, defaulted and valid. It prints all
// problems, and fails if there are errors.
func (p *program) machinesAmong(files []string, s selection) ([]spec.Object, error) {
	machines, others, err := p.machinesAndOthers(files, s)
	if err == nil && len(machines) == 0 {
		err = noMachine(files, s, others)
	}
	return machines, err
}

func (p *program) machinesAndOthers(files []string, s selection) (machines, others []spec.Object, err error) {
	objects, said, err := p.load(files, s, spec.Options{Default: true, Validate: true})
	p.report(said)
	if err != nil {
		return nil, nil, err
	}
	if wrong(said) {
		return nil, nil, errSilent
	}
	for _, o := range objects {
		if o.VirtualMachine != nil {
			machines = append(machines, o)
		} else {
			others = append(others, o)
		}
	}
	return machines, others, nil
}

// machine returns the machine of files for a command that works with one; here is as in
// [selection].
func (p *program) machine(c *cli.Context, files []string, here func(*spec.Object) (bool, error)) (spec.Object, error) {
	s := selected(c)
	s.here = here
	objects, err := p.machinesAmong(files, s)
	if err != nil {
		return spec.Object{}, err
	}
	if len(objects) > 1 {
		names := make([]string, len(objects))
		for i, o := range objects {
			names[i] = fullName(o.Namespace, o.Name)
		}
		return spec.Object{}, fmt.Errorf("%s: %d virtual machines (%s): choose one with --name and --namespace",
			strings.Join(files, ", "), len(objects), strings.Join(names, ", "))
	}
	return objects[0], nil
}

func fullName(namespace, name string) string { return namespaceOr(namespace) + "/" + name }

func needFiles(c *cli.Context) ([]string, error) {
	if c.NArg() == 0 {
		return nil, usagef(c, "FILE is missing: name a manifest, or - for the standard input")
	}
	return c.Args().Slice(), nil
}

func noMachine(files []string, s selection, objects []spec.Object) error {
	var kinds []string
	seen := map[string]bool{}
	for _, o := range objects {
		if kind := o.Kind + " of " + o.APIVersion; !seen[kind] {
			seen[kind] = true
			kinds = append(kinds, kind)
		}
	}
	message := strings.TrimSpace(fmt.Sprintf("no VirtualMachine in %s %s", strings.Join(files, ", "), s))
	if len(kinds) > 0 {
		message += ", but " + strings.Join(kinds, ", ")
	}
	return fmt.Errorf("%s; understood are %s", message, understood())
}
