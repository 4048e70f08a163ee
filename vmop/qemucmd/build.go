package qemucmd

import (
	"errors"
)

// Build returns the command line of the standard machine m on the host h. It is a pure function and
// modifies neither argument.
//
// The error joins one [*Error] per problem (see [Problems]); with an error the command is empty.
// Nothing in m is skipped, shortened or guessed; unset fields get the defaults that they document.
//
// The CPU topology follows QEMU's rule for the machine types since 6.2: the factor by which the
// maximum exceeds the given parts goes to the cores if they are not given, else to the sockets, the
// threads, the dies. A maximum that the given parts do not divide is an error.
//
// The guest address of a device depends only on its position in its own list. Appending a disk,
// network or CD drive leaves the options of all others unchanged, byte for byte.
func Build(m Machine, h Host) (Command, error) {
	b, err := build(m, h)
	if err != nil {
		return Command{}, err
	}
	return b.command(), nil
}

// GroupNames returns the names of all groups that a command can have, in order.
func GroupNames() []string {
	var names []string
	for _, p := range kinds {
		names = append(names, p.name)
	}
	return names
}

func build(m Machine, h Host) (*builder, error) {
	b := &builder{m: m, h: h}
	b.checkHost()
	b.checkAddressMap()
	b.accel = b.chooseAccelerator()
	b.machineType = b.chooseMachineType()
	b.firmware = b.chooseFirmware()
	b.cpu = b.chooseTopology()
	for _, p := range kinds {
		b.group = p.name
		p.build(b)
	}
	b.checkBootOrder()
	b.checkSockets()
	b.checkDescriptors()
	b.checkFiles()
	if len(b.errs) == 0 { // with errors, options are missing that others refer to
		b.checkOptions()
	}
	if len(b.errs) > 0 {
		return nil, errors.Join(b.errs...)
	}
	return b, nil
}

func (b *builder) command() Command {
	return Command{
		Executable:  b.h.QEMU,
		Groups:      b.groups,
		Files:       items(b.files, nil),
		Sockets:     items(b.sockets, nil),
		Helpers:     items(b.helpers, nil),
		MachineType: b.machineType.Name,
		Accelerator: b.accel,
		Warnings:    b.warnings,
	}
}

func items[T any](all []owned[T], keep func(owned[T]) bool) []T {
	var out []T
	for _, o := range all {
		if keep == nil || keep(o) {
			out = append(out, o.item)
		}
	}
	return out
}
