package vmop

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// The most common types, under the name of this package.
type (
	// VirtualMachine declares a machine.
	VirtualMachine = spec.VirtualMachine
	// Change is a difference between two manifests of a machine.
	Change = changes.Change
	// Local is where a machine on one host has its files.
	Local = machineconfig.Host
	// Settings are the operator's configuration for all machines. The zero value is VM-Operator's
	// default, whose pods have VM-Operator's runner: for vmop's, set RunnerImage.
	Settings = objects.Settings
)

// ErrNoMachine means that the input contains no virtual machine.
var ErrNoMachine = errors.New("no VirtualMachine")

// Load returns the virtual machines of a stream of YAML documents or JSON values, with their
// defaults. Other objects are ignored; a document with neither apiVersion nor kind is taken for a
// virtual machine, because yaml.Marshal writes one from a Go literal. The name is used in messages
// only.
//
// If anything is wrong, only an error is returned: a [*spec.LoadError], which has every problem
// with its place in the file, or [ErrNoMachine] if no object is a machine. Machines of other
// systems are translated by package dialect. Programs that need the places of valid fields, or the
// other kinds, use [spec.Load].
func Load(name string, data []byte) ([]*VirtualMachine, error) {
	objects, err := spec.Load(name, data, spec.Options{Kind: spec.KindVirtualMachine, Default: true, Validate: true})
	if err != nil {
		return nil, err
	}
	var vms []*VirtualMachine
	var others []string
	for _, o := range objects {
		if o.VirtualMachine != nil {
			vms = append(vms, o.VirtualMachine)
			continue
		}
		if other := fmt.Sprintf("%s of %s", o.Kind, o.APIVersion); !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	switch {
	case len(vms) > 0:
		return vms, nil
	case len(others) > 0:
		return nil, fmt.Errorf("%s: %w, but %s; want apiVersion %s and kind %s", name, ErrNoMachine, strings.Join(others, ", "), spec.GroupVersion(), spec.KindVirtualMachine)
	}
	return nil, fmt.Errorf("%s: %w: it has no document", name, ErrNoMachine)
}

var errNilMachine = errors.New("there is no virtual machine: the pointer is nil")

// Validate returns all problems of a machine that was created in Go; those from [Load] are valid.
// The problems are joined by errors.Join, each is a field.Error of apimachinery.
func Validate(vm *VirtualMachine) error {
	if vm == nil {
		return errNilMachine
	}
	var errs []error
	for _, e := range spec.Validate(vm) {
		errs = append(errs, e)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", vm.Title(), err)
	}
	return nil
}

// Changes returns the differences between two manifests of one machine, and whether each can be
// applied to a machine that was started with the old one while it runs. It is [changes.Between] for
// a cluster that does not resize pods in place. Names and namespaces are not compared, so that two
// machines can be compared, too.
func Changes(old, new *VirtualMachine) []Change {
	return changes.Between(old, new, changes.Options{Pod: changes.StartedWith(old)})
}
