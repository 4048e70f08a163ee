package spec

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxAttachmentName is how long the name of a [VirtualMachineBlockDeviceAttachment] may
// be: it is the value of a label, and part of other names.
const MaxAttachmentName = 60

func attachmentKind() Kind {
	return typed(Kind{
		Name: KindAttachment, Plural: ResourceAttachments, noun: "attachment",
		NewList:   func() runtime.Object { return &VirtualMachineBlockDeviceAttachmentList{} },
		defaulted: func(reflect.Type) []string { return nil },
	}, functions[*VirtualMachineBlockDeviceAttachment]{
		setDefaults: func(*VirtualMachineBlockDeviceAttachment) {}, // it has none
		validate:    ValidateAttachment,
		written: func(a *VirtualMachineBlockDeviceAttachment) {
			a.Status = VirtualMachineBlockDeviceAttachmentStatus{}
		},
	})
}

// NewAttachment is [NewVirtualMachine] for an attachment of a disk to a machine.
func NewAttachment(namespace, name, machine string, device AttachedBlockDevice) *VirtualMachineBlockDeviceAttachment {
	a := &VirtualMachineBlockDeviceAttachment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       VirtualMachineBlockDeviceAttachmentSpec{VirtualMachineName: machine, BlockDeviceRef: device},
	}
	a.SetGroupVersionKind(GroupVersion().WithKind(KindAttachment))
	return a
}

// ClaimName is the name of the volume claim that has what is attached; empty for a kind
// that there is not.
func (r *AttachedBlockDevice) ClaimName() string {
	switch r.Kind {
	case AttachedDisk:
		return VirtualDiskClaimName(r.Name)
	case AttachedClaim:
		return r.Name
	}
	return ""
}

// ValidateAttachment is [Validate] for an attachment.
func ValidateAttachment(a *VirtualMachineBlockDeviceAttachment) field.ErrorList {
	if a == nil {
		return missing(KindAttachment)
	}
	var errs field.ErrorList
	meta, path := paths(true).at("metadata"), paths(true).at("spec")
	switch {
	case a.Name == "":
		errs = append(errs, requiredAt(meta.Child("name"), "an attachment needs a name"))
	case len(a.Name) > MaxAttachmentName:
		errs = append(errs, tooLongAt(meta.Child("name"), a.Name, MaxAttachmentName))
	default:
		errs = append(errs, invalid(meta.Child("name"), a.Name, isSubdomain)...)
	}
	errs = append(errs, validateNamespace(&a.ObjectMeta, true)...)
	named := func(at spot, name, what string) {
		if name == "" {
			errs = append(errs, requiredAt(at, what))
			return
		}
		errs = append(errs, invalid(at, name, isSubdomain)...)
	}
	named(path.Child("virtualMachineName"), a.Spec.VirtualMachineName, "the machine that gets the disk")
	ref := path.Child("blockDeviceRef")
	errs = append(errs, oneOf(ref.Child("kind"), a.Spec.BlockDeviceRef.Kind, AttachedDisk, AttachedClaim)...)
	named(ref.Child("name"), a.Spec.BlockDeviceRef.Name, "the disk")
	return errs
}
