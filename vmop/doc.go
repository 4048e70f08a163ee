// Package vmop is the front door of the SDK: what most programs need to work
// with virtual machines that are declared as Kubernetes resources and run by
// plain QEMU.
//
//	vms, err := vmop.Load("vm.yaml", data)       // parse, default, validate
//	out, err := vmop.Render(vms[0], vmop.RenderOptions{})
//	fmt.Println(out.Command.Shell())             // the QEMU command line
//	for _, c := range vmop.Changes(old, vms[0]) { // what needs a restart?
//		fmt.Println(c)
//	}
//
// Nothing here reads a file, a clock or the environment, starts a process or
// talks to a cluster: the functions are as good in a test or a web server as on
// a node. The same arguments give the same result, byte for byte, and no
// argument is changed.
//
// # Where to go from here
//
//   - [github.com/vmop/sdk/vmop/spec] has the types of the API, its loader with
//     file and line, the defaults and the validation,
//   - [github.com/vmop/sdk/vmop/reconcile] makes the decisions: configurations,
//     Kubernetes objects, changes,
//   - [github.com/vmop/sdk/vmop/runnerconfig] has the configuration that the
//     runner reads,
//   - [github.com/vmop/sdk/vmop/qemucmd] makes command lines of machines,
//     whether they come from a manifest or not,
//   - [github.com/vmop/sdk/vmop/hostprobe] tells what the QEMU of this host can
//     do, for [RenderOptions],
//   - [github.com/vmop/sdk/vmop/cloudinit] makes the NoCloud seed,
//   - [github.com/vmop/sdk/vmop/runner] runs a machine inside of your program,
//   - [github.com/vmop/sdk/vmop/qmp] talks to a QEMU that runs.
package vmop
