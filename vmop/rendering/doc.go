// Package rendering writes what vmop.Render makes of machines, as vmop-cli render does: the
// command line for a shell, the runner's configuration, the Kubernetes objects as kubectl
// takes them, the documents for cloud-init, or all of it, for people and for programs.
//
//	r, err := vmop.Render(vm, vmop.RenderOptions{})
//	err = rendering.Write(os.Stdout, rendering.QEMU, rendering.Shell,
//		[]rendering.Machine{{Name: vm.Name, Rendered: r}})
//
// The same machines give the same text, byte for byte.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package rendering
