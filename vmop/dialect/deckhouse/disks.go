package deckhouse

import (
	"slices"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

// refer has the machine refer to a disk or image of its cluster.
func (m *machine) refer(ref *tree.Node, kind, name string) {
	r := spec.BlockDeviceRef{Kind: kind, Name: name}
	if order, ok := ref.Get("bootOrder").Int(); ok {
		r.BootOrder = &order
	}
	m.vm.Spec.BlockDeviceRefs = append(m.vm.Spec.BlockDeviceRefs, r)
}

// blockDevices translates disks and images, whose order is the boot order here
// and there. They are those of the cluster, which a host has its own of; an image of the
// cluster is none that a machine refers to here.
func (m *machine) blockDevices() error {
	var disks []*spec.Disk // in the order of the list; nil for a reference
	for _, ref := range m.root.Get("spec", "blockDeviceRefs").List() {
		kind, name := ref.Get("kind").String(), ref.Get("name").String()
		switch kind {
		case kindDisk, kindImage:
			m.refer(ref, kind, name)
			disks = append(disks, nil)
		case kindClusterImage:
			of, err := m.companion(kind, name)
			if err != nil {
				return err
			}
			disk := m.image(ref, of, kind, name)
			if order, ok := ref.Get("bootOrder").Int(); ok {
				disk.Bootindex = &order
			}
			disks = append(disks, &disk)
		default:
			ref.Note("a %s has no counterpart; the disk is left out", kind)
		}
	}
	m.placeBlockDevices(disks)
	return nil
}

// placeBlockDevices adds the disks to those of the machine. References come behind them,
// so that where a list has them otherwise, each says its place in the boot order. What
// is nil is a reference.
func (m *machine) placeBlockDevices(disks []*spec.Disk) {
	refs := m.vm.Spec.BlockDeviceRefs
	given := slices.ContainsFunc(disks, func(d *spec.Disk) bool { return d != nil && d.Bootindex != nil }) ||
		slices.ContainsFunc(refs, func(r spec.BlockDeviceRef) bool { return r.BootOrder != nil })
	first := slices.Index(disks, nil)
	place := !given && first >= 0 && slices.ContainsFunc(disks[first:], func(d *spec.Disk) bool { return d != nil })
	n := 0
	for i, d := range disks {
		switch {
		case d == nil && place:
			refs[n].BootOrder = new(int32(i + 1))
		case d != nil && place:
			d.Bootindex = new(int32(i))
		case d != nil && d.Bootindex != nil && len(refs) > 0:
			d.Bootindex = new(*d.Bootindex - 1) // counted from 0, beside a bootOrder
		}
		if d == nil {
			n++
			continue
		}
		m.vm.Spec.VM.Disks = append(m.vm.Spec.VM.Disks, *d)
	}
}

// image translates an image, which is read only: a CD.
func (m *machine) image(ref, of *tree.Node, kind, name string) spec.Disk {
	url := of.Get("spec", "dataSource", "http", "url").String()
	switch {
	case of == nil:
		ref.Note("%s %s is not among the files; the drive is empty", kind, name)
	case url == "":
		ref.Note("%s %s is not from a web server; the drive is empty", kind, name)
	default:
		ref.Note("%s %s is a CD that is read from its web server while the machine runs", kind, name)
	}
	return spec.Disk{Cdrom: &spec.Cdrom{Image: url}}
}

// companion returns the object that a machine refers to, if it was given. It is translated
// by itself, which tells what is not read of it.
func (m *machine) companion(kind, name string) (*tree.Node, error) {
	return lookUp(m.all, kind, m.vm.Namespace, name)
}
