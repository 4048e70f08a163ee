package controller

import (
	"github.com/vmop/sdk/vmop/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type storedAttachment = kept[spec.VirtualMachineBlockDeviceAttachment]

// attachedTo and attachedClaim return the machine and the claim of an attachment, nothing if it
// cannot be decoded.
func attachedTo(o client.Object) []string {
	return attachmentNames(o, func(a *spec.VirtualMachineBlockDeviceAttachment) string { return a.Spec.VirtualMachineName })
}

func attachedClaim(o client.Object) []string {
	return attachmentNames(o, func(a *spec.VirtualMachineBlockDeviceAttachment) string { return a.Spec.BlockDeviceRef.ClaimName() })
}

func attachmentNames(o client.Object, name func(*spec.VirtualMachineBlockDeviceAttachment) string) []string {
	stored, is := o.(*storedAttachment)
	if !is {
		return nil
	}
	a, err := stored.decode()
	if err != nil || name(a) == "" {
		return nil
	}
	return []string{name(a)}
}

type (
	storedAttachmentList = keptList[spec.VirtualMachineBlockDeviceAttachment]
)
