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
// # How the parts fit
//
// A manifest becomes a running QEMU in three steps, each in a package that can be used
// alone; [Render] takes all of them.
//
//	manifest       spec.Load, or a VirtualMachine created in Go
//	   ↓           machineconfig.ForHost (one host), ForCluster (a pod)
//	configuration  runnerconfig.Config: the file that a runner reads
//	   ↓           runnerconfig.Machine, with facts about files
//	machine        qemucmd.Machine
//	   ↓           qemucmd.Build, with facts about the host (hostprobe)
//	command        the arguments of QEMU, its files, sockets and helpers
//
// Other packages act on them: package runner runs one configuration, package host manages
// the machines of a host by their names, and package reconcile/machine decides what an
// operator does for those of a cluster.
//
// A program that runs machines on its own host begins with package host; one that chooses
// the places of files itself, with machineconfig.ForHost and package runner
// (examples/go-run); one that only interprets manifests, here (examples/go-render).
//
// Nothing here reads a file, a clock or the environment, starts a process or connects to a
// cluster. The same arguments give the same result, byte for byte, and no argument is
// changed.
//
// # What stays as it is
//
// Everything that is stored or sent remains compatible: the fields and defaults of the
// resources (spec), the runner's configuration (runnerconfig), labels, annotations,
// condition types and reasons (names, conditions), and a guest's hardware.
//
// The Go interface of the packages below vmop is compared with that of the last release
// (make apidiff). Before version 1.0 a release may break some of it: each break is in
// scripts/apidiff.allowed with its reason. The packages below reconcile make the operator's
// decisions, and change with it. Nothing is promised of frontends, internal, examples, fuzz
// and tools.
//
// # Where to go from here
//
// What a manifest means, purely:
//
//   - [github.com/vmop/sdk/vmop/spec] has the types of the API, its loader with
//     file and line, the defaults and the validation,
//   - [github.com/vmop/sdk/vmop/dialect] translates the manifests of KubeVirt
//     ([github.com/vmop/sdk/vmop/dialect/kubevirt]) and Deckhouse Virtualization
//     ([github.com/vmop/sdk/vmop/dialect/deckhouse]),
//   - [github.com/vmop/sdk/vmop/reconcile/machineconfig] creates the runner's
//     configuration of a machine, [github.com/vmop/sdk/vmop/runnerconfig],
//   - [github.com/vmop/sdk/vmop/reconcile/changes] compares two manifests,
//   - [github.com/vmop/sdk/vmop/qemucmd] builds the command lines of machines,
//     from a manifest or not,
//   - [github.com/vmop/sdk/vmop/cloudinit] creates the NoCloud seed,
//   - [github.com/vmop/sdk/vmop/rendering] formats the result of [Render] for display and
//     for programs,
//   - [github.com/vmop/sdk/vmop/limits] has the limits of machines, and
//     [github.com/vmop/sdk/vmop/names] and [github.com/vmop/sdk/vmop/conditions] have
//     the names of the API.
//
// Machines of one host:
//
//   - [github.com/vmop/sdk/vmop/host] manages them: it creates, starts, waits for,
//     copies and deletes them; [github.com/vmop/sdk/vmop/inspect] inspects one,
//     and [github.com/vmop/sdk/vmop/serial] shows its console at a terminal,
//   - [github.com/vmop/sdk/vmop/runner] runs a machine inside of your program, with
//     [github.com/vmop/sdk/vmop/runner/tap] for its interfaces and
//     [github.com/vmop/sdk/vmop/runner/tunnel] for disks of another host, and
//     [github.com/vmop/sdk/vmop/runner/vmstatus] for its status,
//   - [github.com/vmop/sdk/vmop/output] decodes what vmop-cli prints with -o json,
//   - [github.com/vmop/sdk/vmop/live] decides which changes of a configuration are
//     applied to a running machine,
//   - [github.com/vmop/sdk/vmop/hostprobe] probes the QEMU of this host, for
//     [RenderOptions],
//   - [github.com/vmop/sdk/vmop/transfer] transfers the content of a disk between a
//     user's program and a pod,
//   - [github.com/vmop/sdk/vmop/imagesource] fetches disk images, and
//     [github.com/vmop/sdk/vmop/imageinspect] inspects them.
//
// Machines of a cluster, decided purely:
//
//   - [github.com/vmop/sdk/vmop/reconcile] is what all decisions share, and documents
//     how a program acts on them; [github.com/vmop/sdk/vmop/reconcile/machine],
//     [github.com/vmop/sdk/vmop/reconcile/pool],
//     [github.com/vmop/sdk/vmop/reconcile/operation],
//     [github.com/vmop/sdk/vmop/reconcile/disk] and
//     [github.com/vmop/sdk/vmop/reconcile/attachment] decide about one kind each,
//   - [github.com/vmop/sdk/vmop/reconcile/objects] creates the Kubernetes objects of a
//     machine,
//   - [github.com/vmop/sdk/vmop/reconcile/observation] decides what an observer
//     of a cluster may rely on,
//   - [github.com/vmop/sdk/vmop/reconcile/console] decides how a user reaches a display,
//   - [github.com/vmop/sdk/vmop/operatorconfig] reads the operator's configuration, and
//     [github.com/vmop/sdk/vmop/takeover] checks a cluster of VM-Operator
//     before it is taken over.
//
// Protocols, for any QEMU:
//
//   - [github.com/vmop/sdk/vmop/qmp] controls a running QEMU, also behind go-qemu's
//     interface ([github.com/vmop/sdk/vmop/qmp/goqemu]),
//   - [github.com/vmop/sdk/vmop/qga] to the guest agent of QEMU,
//   - [github.com/vmop/sdk/vmop/vmopagent] to VM-Operator's agent in a guest.
//
// For tests, including yours:
//
//   - [github.com/vmop/sdk/vmop/spec/spectest] generates random machines,
//     [github.com/vmop/sdk/vmop/qmp/qmptest] is a fake QEMU and
//     [github.com/vmop/sdk/vmop/qga/qgatest] a fake guest agent,
//   - [github.com/vmop/sdk/vmop/reconcile/machine/machinetest],
//     [github.com/vmop/sdk/vmop/reconcile/pool/pooltest],
//     [github.com/vmop/sdk/vmop/reconcile/operation/operationtest],
//     [github.com/vmop/sdk/vmop/reconcile/disk/disktest] and
//     [github.com/vmop/sdk/vmop/reconcile/attachment/attachmenttest] check your
//     decisions against the promises of ours.
package vmop
