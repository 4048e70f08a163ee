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
// A manifest becomes a running QEMU in three steps, each of which is a package that can
// be used alone; [Render] takes all of them.
//
//	manifest       spec.Load, or a VirtualMachine that is made in Go
//	   ↓           machineconfig.ForHost (one host), ForCluster (a pod)
//	configuration  runnerconfig.Config: the file that a runner reads
//	   ↓           runnerconfig.Machine, with facts about files
//	machine        qemucmd.Machine
//	   ↓           qemucmd.Build, with facts about the host (hostprobe)
//	command        the arguments of QEMU, its files, sockets and helpers
//
// What acts on them is beside: package runner runs one configuration, package host keeps
// the machines of a host by their names, and package machine, of reconcile, decides what
// an operator does for those of a cluster.
//
// A program that wants machines on its own host begins with package host; one that has
// its own idea of where things are, with machineconfig.ForHost and package runner
// (examples/go-run); one that only wants to know what a manifest means, here
// (examples/go-render).
//
// Nothing here reads a file, a clock or the environment, starts a process or
// talks to a cluster: the functions are as good in a test or a web server as on
// a node. The same arguments give the same result, byte for byte, and no
// argument is changed.
//
// # What stays as it is
//
// What is stored or sent outlives a program, and is kept: the fields and defaults of the
// resources (spec), the runner's configuration (runnerconfig), labels, annotations,
// condition types and reasons (names, conditions), and what a guest sees of its machine.
//
// The Go interface of the packages below vmop is compared with that of the last release
// (make apidiff). Until there is a version 1.0 a release may break some of it: each break
// is in scripts/apidiff.allowed with its reason. The packages below reconcile are those by
// which the operator decides, and change with it. Nothing is promised of frontends,
// internal, examples, fuzz and tools.
//
// # Where to go from here
//
// What a manifest means, purely:
//
//   - [github.com/vmop/sdk/vmop/spec] has the types of the API, its loader with
//     file and line, the defaults and the validation,
//   - [github.com/vmop/sdk/vmop/dialect] understands the manifests of KubeVirt
//     ([github.com/vmop/sdk/vmop/dialect/kubevirt]) and Deckhouse Virtualization
//     ([github.com/vmop/sdk/vmop/dialect/deckhouse]),
//   - [github.com/vmop/sdk/vmop/reconcile/machineconfig] makes the runner's
//     configuration of a machine, and [github.com/vmop/sdk/vmop/runnerconfig] is that,
//   - [github.com/vmop/sdk/vmop/reconcile/changes] compares two manifests,
//   - [github.com/vmop/sdk/vmop/qemucmd] makes command lines of machines,
//     whether they come from a manifest or not,
//   - [github.com/vmop/sdk/vmop/cloudinit] makes the NoCloud seed,
//   - [github.com/vmop/sdk/vmop/rendering] writes what [Render] makes, for people and
//     programs,
//   - [github.com/vmop/sdk/vmop/limits] says what a machine may be, and
//     [github.com/vmop/sdk/vmop/names] and [github.com/vmop/sdk/vmop/conditions] how
//     things are called.
//
// Machines of one host:
//
//   - [github.com/vmop/sdk/vmop/host] keeps them: it creates, starts, waits for,
//     copies and deletes them; [github.com/vmop/sdk/vmop/inspect] looks into one,
//     and [github.com/vmop/sdk/vmop/serial] shows its console at a terminal,
//   - [github.com/vmop/sdk/vmop/runner] runs a machine inside of your program, with
//     [github.com/vmop/sdk/vmop/runner/tap] for its interfaces and
//     [github.com/vmop/sdk/vmop/runner/tunnel] for disks of another host, and
//     [github.com/vmop/sdk/vmop/runner/vmstatus] for what it says in a status,
//   - [github.com/vmop/sdk/vmop/output] decodes what vmop-cli prints with -o json,
//   - [github.com/vmop/sdk/vmop/live] decides what of a new configuration reaches a
//     machine that runs,
//   - [github.com/vmop/sdk/vmop/hostprobe] tells what the QEMU of this host can
//     do, for [RenderOptions],
//   - [github.com/vmop/sdk/vmop/transfer] carries the content of a disk between a
//     person's program and a pod,
//   - [github.com/vmop/sdk/vmop/imagesource] gets disk images from where they are, and
//     [github.com/vmop/sdk/vmop/imageinspect] looks into them.
//
// Machines of a cluster, decided purely:
//
//   - [github.com/vmop/sdk/vmop/reconcile] is what all decisions share, and says what
//     a program does that acts on them; [github.com/vmop/sdk/vmop/reconcile/machine],
//     [github.com/vmop/sdk/vmop/reconcile/pool],
//     [github.com/vmop/sdk/vmop/reconcile/operation],
//     [github.com/vmop/sdk/vmop/reconcile/disk] and
//     [github.com/vmop/sdk/vmop/reconcile/attachment] decide about one kind each,
//   - [github.com/vmop/sdk/vmop/reconcile/objects] makes the Kubernetes objects of a
//     machine,
//   - [github.com/vmop/sdk/vmop/reconcile/observation] says what an observer may
//     believe,
//   - [github.com/vmop/sdk/vmop/reconcile/console] says how a user gets to a display,
//   - [github.com/vmop/sdk/vmop/operatorconfig] reads the operator's configuration, and
//     [github.com/vmop/sdk/vmop/takeover] says what becomes of a cluster of VM-Operator.
//
// Protocols, for any QEMU:
//
//   - [github.com/vmop/sdk/vmop/qmp] talks to a QEMU that runs, also behind go-qemu's
//     interface ([github.com/vmop/sdk/vmop/qmp/goqemu]),
//   - [github.com/vmop/sdk/vmop/qga] to the guest agent of QEMU,
//   - [github.com/vmop/sdk/vmop/vmopagent] to VM-Operator's agent in a guest.
//
// For tests, of yours too:
//
//   - [github.com/vmop/sdk/vmop/spec/spectest] draws machines,
//     [github.com/vmop/sdk/vmop/qmp/qmptest] is a QEMU and
//     [github.com/vmop/sdk/vmop/qga/qgatest] a guest agent that do as they are told,
//   - [github.com/vmop/sdk/vmop/reconcile/machine/machinetest],
//     [github.com/vmop/sdk/vmop/reconcile/pool/pooltest],
//     [github.com/vmop/sdk/vmop/reconcile/operation/operationtest],
//     [github.com/vmop/sdk/vmop/reconcile/disk/disktest] and
//     [github.com/vmop/sdk/vmop/reconcile/attachment/attachmenttest] hold decisions of
//     yours to what ours promise.
package vmop
