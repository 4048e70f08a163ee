// Package tinyguest builds the small Linux machine that tests and "make run"
// boot: the distribution's kernel, the few drivers that QEMU's devices need and
// an init of a few kilobytes that offers a conversation on the serial console.
// It reaches its prompt in about a second, also without hardware virtualization.
//
// [Ensure] builds the guest once and keeps it in a cache outside the source
// tree. [NewConsole] speaks with a running guest:
//
//	guest, err := tinyguest.Ensure(ctx, tinyguest.Options{})
//	// start QEMU with -kernel guest.Kernel -initrd guest.Initrd
//	// -append tinyguest.CommandLine -serial unix:PATH,server=on,wait=off
//	console := tinyguest.NewConsole(conn)
//	defer console.Close()
//	err = console.WaitReady(ctx)
//	out, err := console.Command(ctx, "disks")
//
// # The guest
//
// When all drivers of the devices that are present have been loaded, the guest
// prints a few facts and the line [Ready], and then a prompt. "help" lists the
// commands. Every answer is plain lines; a failure is one line that starts with
// "error: ". Lines that start with "vmop-guest: " report events: an added processor
// ("vmop-guest: cpu 1 online"), a disk or network interface that was added or removed,
// the power button.
//
// Words on the kernel's command line switch parts on:
//
//   - [WordAgent]: answer the login protocol on the virtio port [PortAgent]
//   - [WordGuestAgent]: answer guest-ping, guest-sync, guest-info,
//     guest-get-osinfo and guest-shutdown on the virtio port [PortGuestAgent]
//   - [WordIgnorePowerButton]: print a line instead of shutting down when the
//     power button is pressed
//
// [Guest.WithFiles] adds files, which "exec" on the console starts as programs.
//
// Added processors and memory come online by themselves. Drivers are loaded
// when a device asks for them, also after a hotplug.
//
// # The kernel
//
// On Debian and its relatives the kernel package is fetched with apt-get and
// unpacked, not installed; this needs no privileges. Elsewhere name a folder
// with an unpacked kernel package in [Options].KernelPackageDir; "/" stands for
// the kernel that is installed.
//
// Debian's cloud kernel has no driver for AHCI, the controller behind the
// ide-cd of a q35 machine: [FlavorGeneric] has one, and boots more slowly.
// A TPM is announced by ACPI tables that QEMU withholds from a kernel which it
// starts directly (PVH): boot [Guest].BzImage where a TPM is wanted.
package tinyguest
