package spec

// NameMissing is the reason for which metadata.name is required of a machine.
const NameMissing = "a machine needs a name, which also its pod and its disks are called by"

// Title is a machine's name in a message: its kind and its name, as in "virtual machine web".
func (vm *VirtualMachine) Title() string {
	if vm == nil || vm.Name == "" {
		return "virtual machine without a name"
	}
	return "virtual machine " + vm.Name
}
