package spec

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func operationKind() Kind {
	return typed(Kind{
		Name: KindOperation, Plural: ResourceOperations, noun: "operation",
		NewList:   func() runtime.Object { return &VirtualMachineOperationList{} },
		defaulted: func(reflect.Type) []string { return nil },
	}, functions[*VirtualMachineOperation]{
		setDefaults: func(*VirtualMachineOperation) {}, // it has none
		validate:    ValidateOperation,
		written:     func(o *VirtualMachineOperation) { o.Status = VirtualMachineOperationStatus{} },
	})
}

// NewOperation is [NewVirtualMachine] for an operation on a machine of the namespace.
// It has no name: an API server makes one of that of the machine
// (metadata.generateName).
func NewOperation(namespace, machine string, t OperationType) *VirtualMachineOperation {
	o := &VirtualMachineOperation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: machine + "-"},
		Spec:       VirtualMachineOperationSpec{Type: t, VirtualMachineName: machine},
	}
	o.SetGroupVersionKind(GroupVersion().WithKind(KindOperation))
	return o
}

// ValidateOperation is [Validate] for an operation.
func ValidateOperation(o *VirtualMachineOperation) field.ErrorList {
	if o == nil {
		return missing(KindOperation)
	}
	var errs field.ErrorList
	meta, path := paths(true).at("metadata"), paths(true).at("spec")
	switch {
	case o.Name != "":
		errs = append(errs, invalid(meta.Child("name"), o.Name, isSubdomain)...)
	case o.GenerateName == "":
		errs = append(errs, requiredAt(meta.Child("name"), "an operation needs a name, or metadata.generateName"))
	}
	if o.GenerateName != "" {
		errs = append(errs, invalid(meta.Child("generateName"), o.GenerateName, isBeginning)...)
	}
	errs = append(errs, validateNamespace(&o.ObjectMeta, true)...)
	errs = append(errs, oneOf(path.Child("type"), o.Spec.Type,
		OperationStart, OperationStop, OperationRestart, OperationEvict, OperationMigrate, OperationSuspend, OperationResume)...)
	if o.Spec.VirtualMachineName == "" {
		errs = append(errs, requiredAt(path.Child("virtualMachineName"), "an operation is about a machine"))
	} else {
		errs = append(errs, invalid(path.Child("virtualMachineName"), o.Spec.VirtualMachineName, isSubdomain)...)
	}
	if o.Spec.Type == OperationStart && o.Spec.Force {
		errs = append(errs, forbiddenAt(path.Child("force"), "a start cannot be forced"))
	}
	return errs
}
