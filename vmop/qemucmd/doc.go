// Package qemucmd turns the description of a virtual machine into QEMU's command
// line. It is pure: it reads no file, no environment and no clock, and starts
// nothing. A [Machine] is what the guest is to see, a [Host] what the QEMU at
// hand can do, and [Build] makes a [Command] of them:
//
//	cmd, err := qemucmd.Build(machine, host)
//	if err != nil { … } // all problems at once, by field; see Problems
//	exec.Command(cmd.Executable, cmd.Args()...)
//
// Most users get the Host from package hostprobe, which probes the QEMU binary, or use
// [GenericHost] where nothing will run. What must exist before QEMU starts (the copy of the UEFI
// variables, the TPM emulator) is listed in the Command; the caller must create it.
//
// # The contract
//
//   - Text is literal. A comma, quote or equals sign in a name or path reaches
//     QEMU as itself and never becomes an option. Options are structured values
//     ([Option]) until they are rendered; JSON is used wherever QEMU 7.2 takes
//     it. The model of the CPU is the one exception, see [CPU].
//   - Nothing is skipped. What cannot be built is an error that names the field.
//   - Guest addresses, IDs and node names depend on the position of a device in
//     its list only, so they survive restarts, upgrades of QEMU, and additions.
//   - Each option has its reason ([Option.Why]), and belongs to a named group ([GroupNames]).
//
// # The standard machine
//
// The machine is VM-Operator's standard machine as far as a guest can see it: q35 with virtio
// devices. Faults of that template are repaired, which a guest may notice: no unrequested devices,
// a MAC address for each network card, a complete CPU topology, disks that pass discards on. Other
// machines need a custom template, see [BuildTemplate].
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package qemucmd
