package spec

// NameMissing is the reason for which metadata.name is required of a machine.
const NameMissing = "a machine needs a name, which also its pod and its disks are called by"

// Title calls a machine in a message as people do: by its kind and its name, as in
// "virtual machine web".
func (vm *VirtualMachine) Title() string {
	if vm == nil || vm.Name == "" {
		return "virtual machine without a name"
	}
	return "virtual machine " + vm.Name
}
