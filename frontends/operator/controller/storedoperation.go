package controller

import (
	"github.com/vmop/sdk/vmop/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type storedOperation = kept[spec.VirtualMachineOperation]

// operatedOn is the machine that an operation names. One that cannot be understood is
// of none, and the operator leaves it alone.
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
