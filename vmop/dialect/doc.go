// Package dialect understands the machines of other systems: KubeVirt's
// VirtualMachine and VirtualMachineInstance and Deckhouse Virtualization's
// VirtualMachine, VirtualMachineClass, VirtualMachineOperation, VirtualDisk, VirtualImage,
// ClusterVirtualImage and VirtualMachineBlockDeviceAttachment become ours. The
// translation is pure, and says what it could not carry over:
//
//	objects, err := spec.Load("vm.yaml", data, spec.Options{})
//	t, err := dialect.Translate(objects)
//	for _, m := range t.Machines {
//		for _, note := range m.Notes {
//			fmt.Println(note) // vm.yaml:31: VirtualMachine vm1: spec.template.spec.domain.devices.watchdog: has no counterpart
//		}
//	}
//
// Whatever of a manifest is neither translated nor named in a note is a bug of this package, for
// which a property test checks.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package dialect
