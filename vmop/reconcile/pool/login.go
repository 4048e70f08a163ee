package pool

import "github.com/vmop/sdk/vmop/spec"

// LoginUser returns the user that the agent in the guest is to log in: the user whom the machine
// is assigned to, if the pool of the assignment asks for it, else the manifest's
// spec.vm.display.loggedInUser; empty for none. The pool is the one that the machine is assigned
// from, nil if there is none.
func LoginUser(vm *spec.VirtualMachine, pool *spec.VmPool) string {
	if vm == nil {
		return ""
	}
	if a := vm.Status.Assignment; pool != nil && isAssigned(a) && a.Pool == pool.Name && pool.Spec.LoginOnAssignment {
		return a.User
	}
	if d := vm.Spec.VM.Display; d != nil {
		return d.LoggedInUser
	}
	return ""
}
