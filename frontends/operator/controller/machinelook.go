package controller

import (
	"cmp"
	"slices"

	"github.com/vmop/sdk/vmop/spec"
)

// machineLook is a look at a machine.
type machineLook struct{ *look }

// attachmentsBy are those that an index has, in an order of their own.
func attachmentsBy(w *look, index, value string) []spec.VirtualMachineBlockDeviceAttachment {
	var l storedAttachmentList
	w.list(&l, index, value)
	var out []spec.VirtualMachineBlockDeviceAttachment
	for i := range l.Items {
		if a, err := l.Items[i].decode(); err == nil {
			out = append(out, *a)
		}
	}
	slices.SortFunc(out, func(a, b spec.VirtualMachineBlockDeviceAttachment) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
