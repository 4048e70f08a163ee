package spec

import (
	"k8s.io/apimachinery/pkg/util/validation"
)

// FoundWithPathsAndWithout are the numbers of what is wrong with a machine as it is
// found with paths and without, for the property test.
func FoundWithPathsAndWithout(vm *VirtualMachine) (with, without int) {
	vm = vm.DeepCopy()
	Default(vm)
	return len(judge(vm, validation.IsDNS1035Label, true)), len(judge(vm, validation.IsDNS1035Label, false))
}
