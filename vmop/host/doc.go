// Package host has the machines of one host: where they are, which there are,
// what they are doing, and how they are started, stopped and deleted, without a
// cluster, root or a daemon. It is what vmop-cli acts on.
//
//	h, err := host.Open(host.Options{})
//	...
//	machines, err := h.List(host.ListOptions{})
//	m, err := h.Find("hello", "")
//	m, err = h.Wait(ctx, m, host.ForRunning)
//	m, err = h.Stop(ctx, m, host.StopOptions{})
//
// A machine is a directory, DATA/machines/NAMESPACE/NAME, with what its runner
// keeps there (see package runner) and what is written here: the manifest as it is
// run, the last state, and the log of a machine that runs in the background. The
// machine runs while processes hold the lock of that directory; its state file only
// adds details.
//
// Sockets are in a directory of the user's own at run time, RUNTIME/NAMESPACE/NAME.
//
// Nothing here removes or replaces a disk unless it is asked to, by
// [Machine.Delete], and then only images that were made in the machine's
// directory.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package host
