package controller

import (
	"github.com/vmop/sdk/vmop/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type storedOperation = kept[spec.VirtualMachineOperation]

// operatedOn returns the machine of an operation. One that cannot be decoded has none, and is left
// alone.
func operatedOn(o client.Object) []string {
	stored, is := o.(*storedOperation)
	if !is {
		return nil
	}
	decoded, err := stored.decode()
	if err != nil {
		return nil
	}
	return []string{decoded.Spec.VirtualMachineName}
}
