package qemucmd

import (
	"errors"
	"slices"
	"strings"
)

// Build returns the command line of the standard machine m on the host h. It is
// a pure function: equal arguments give equal commands, and neither argument is
// modified.
//
// All problems are collected: the error joins one [*Error] per problem (see
// [Problems]), and with an error the command is empty. Nothing in m is ever
// skipped, shortened or guessed at; what m leaves open is completed as its
// fields document.
//
// The CPU topology follows QEMU's rule for the machine types since 6.2: what
// the given parts leave over of the maximum goes to the cores if they are not
// given, else to the sockets, else to the threads, else to the dies. A maximum
// that the given parts do not divide is an error.
//
// Devices have fixed guest addresses that depend on nothing but their position
// in their own list. A disk, network or CD drive that is added behind the
// others leaves the options of all others as they are, byte for byte.
func Build(m Machine, h Host) (Command, error) {
	b, err := build(m, h)
	if err != nil {
		return Command{}, err
	}
	return b.command(), nil
}

// builder collects the options, and what they need, part by part.
type builder struct {
	m Machine
	h Host

	accel       Accelerator
	machineType MachineType
	cpu         topology
	firmware    FirmwareImage // Code "" with BIOS
	group       string        // the part that is being built

	groups  []Group
	files   []owned[File]
	sockets []owned[NamedSocket]
	helpers []owned[Helper]
	errs    []error

	warnings []string
}

// owned is something that must be there before QEMU runs, and the group of
// options that asks for it.
type owned[T any] struct {
	group string
	item  T
}

// GroupNames returns the names of all groups that a command can have, in order.
// A command has only those that its machine needs.
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
	// These are needed by more than one part.
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

// items returns what is owned by the groups that keep accepts, or everything if
// keep is nil.
func items[T any](all []owned[T], keep func(owned[T]) bool) []T {
	var out []T
	for _, o := range all {
		if keep == nil || keep(o) {
			out = append(out, o.item)
		}
	}
	return out
}

func (b *builder) add(options ...Option) {
	if n := len(b.groups); n > 0 && b.groups[n-1].Name == b.group {
		b.groups[n-1].Options = append(b.groups[n-1].Options, options...)
		return
	}
	b.groups = append(b.groups, Group{Name: b.group, Options: options})
}

// device adds a -device option. field is what asked for it, for the case that
// QEMU does not offer the device.
func (b *builder) device(field, driver, id, why string, props ...Prop) {
	if _, found := slices.BinarySearch(b.h.Devices, driver); !found && !slices.Contains(b.h.Devices, driver) {
		b.errorf(field, "%s does not offer the device %q%s", b.h.QEMU, driver, moduleHint(driver))
	}
	b.add(Option{
		Flag: "-device", HeadKey: "driver", Head: driver, ID: id, Props: props,
		JSON: b.h.JSONDevice, Why: why,
	})
}

// moduleHint names what is often missing: distributions split QEMU into modules.
func moduleHint(driver string) string {
	switch {
	case strings.HasPrefix(driver, "virtio-vga"):
		return "; its module (hw-display-virtio-vga) is probably not installed"
	case driver == "usb-host":
		return "; its module (hw-usb-host) is probably not installed"
	case driver == "usb-redir":
		return "; its module (hw-usb-redirect) is probably not installed"
	}
	return ""
}

func (b *builder) blockdev(field, driver, node, why string, props ...Prop) {
	b.needBlockDriver(field, driver)
	b.add(Option{
		Flag: "-blockdev", HeadKey: "driver", Head: driver, ID: node, Props: props,
		JSON: true, Why: why,
	})
}

func (b *builder) needBlockDriver(field, driver string) {
	if slices.Contains(b.h.BlockDrivers, driver) {
		return
	}
	hint := ""
	if driver == "http" || driver == "https" {
		hint = "; install QEMU's curl block driver (Debian: qemu-block-extra, Fedora: qemu-block-curl, Alpine: qemu-block-curl) or download the image"
	}
	b.errorf(field, "%s does not offer the block driver %q%s", b.h.QEMU, driver, hint)
}

func (b *builder) object(qomType, id, why string, props ...Prop) {
	b.add(Option{
		Flag: "-object", HeadKey: "qom-type", Head: qomType, ID: id, Props: props,
		JSON: true, Why: why,
	})
}

// chardev adds a -chardev option: it has no JSON form in QEMU.
func (b *builder) chardev(backend, id, why string, props ...Prop) {
	b.add(Option{
		Flag: "-chardev", HeadKey: "backend", Head: backend, ID: id, Props: props,
		Why: why,
	})
}

func (b *builder) file(f File) { b.files = append(b.files, owned[File]{b.group, f}) }
func (b *builder) socket(purpose SocketPurpose, s Socket) {
	b.sockets = append(b.sockets, owned[NamedSocket]{b.group, NamedSocket{purpose, s}})
}
func (b *builder) helper(h Helper) { b.helpers = append(b.helpers, owned[Helper]{b.group, h}) }
