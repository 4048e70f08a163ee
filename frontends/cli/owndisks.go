package main

import (
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// always treats all machines as this host's, see [selection].
func always(*spec.Object) (bool, error) { return true, nil }

func besideAmong(objects []spec.Object) *machineconfig.Beside {
	out := &machineconfig.Beside{}
	for i := range objects {
		switch o := objects[i].Typed.(type) {
		case *spec.VirtualDisk:
			out.Disks = append(out.Disks, o)
		case *spec.VirtualImage:
			out.Images = append(out.Images, o)
		case *spec.ClusterVirtualImage:
			out.ClusterImages = append(out.ClusterImages, o)
		case *spec.VirtualMachineBlockDeviceAttachment:
			out.Attachments = append(out.Attachments, o)
		}
	}
	return out
}

// ownDisks replaces, for machines of this host, the disks of a cluster that are among the files by
// disks of their own, and returns remarks about that. The stored machine is then complete.
func ownDisks(objects []spec.Object, beside *machineconfig.Beside, here func(*spec.Object) (bool, error)) ([]finding, error) {
	var said []finding
	for i := range objects {
		o := &objects[i]
		if o.VirtualMachine == nil {
			continue
		}
		if yes, err := here(o); err != nil || !yes {
			if err != nil {
				return said, err
			}
			continue
		}
		own, notes := beside.Own(o.VirtualMachine)
		for _, n := range notes {
			said = append(said, asFindings(output.SeverityNote, o.Problem(n.Field, n.Message))...)
		}
		if own == o.VirtualMachine {
			continue
		}
		if text, err := spec.Marshal(own); err != nil {
			said = append(said, asFindings(output.SeverityError, o.Problem("", err.Error()))...)
		} else {
			o.Raw = text
		}
		o.Typed, o.VirtualMachine = own, own
		said = append(said, asFindings(output.SeverityError, o.Problems(spec.Validate(own))...)...)
	}
	return said, nil
}
