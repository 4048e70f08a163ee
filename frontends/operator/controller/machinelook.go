package controller

import (
	"cmp"
	"slices"

	"github.com/vmop/sdk/vmop/spec"
)

type machineLook struct{ *look }

// attachmentsBy returns the attachments of an index, in a stable order.
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
