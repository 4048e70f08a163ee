// Package hostprobe probes what a host offers for running virtual machines,
// as the [qemucmd.Host] that a command line is built for.
//
// [Probe] is all that most users need. It asks QEMU itself over QMP, on a
// machine without hardware, rather than reading help texts or guessing from
// version numbers; it looks for firmware images, swtpm and the bridge helper;
// and it checks that KVM really executes a guest, by running one:
//
//	result, err := hostprobe.Probe(ctx, hostprobe.Options{CacheDir: dir})
//	if err != nil { … }
//	cmd, err := qemucmd.Build(machine, result.Host)
//
// Asking takes a few tenths of a second. With a cache directory the answers are
// kept for as long as they must be the same; see [Options.CacheDir].
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package hostprobe
