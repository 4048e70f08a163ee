package main

import (
	"strings"

	"github.com/vmop/sdk/vmop/inspect"
	"github.com/vmop/sdk/vmop/spec"
)

// ports lists those that lead to the guest of a machine, by its manifest; anywhere is the address
// of a port without one.
func ports(vm *spec.VirtualMachine, anywhere string) string {
	var out []string
	for _, n := range vm.Spec.VM.Networks {
		if n.User != nil && len(n.User.HostForwards) > 0 {
			out = append(out, inspect.Forwards(n.User.HostForwards, anywhere))
		}
	}
	return strings.Join(out, ", ")
}
