// Package tap makes and opens the tap interfaces of machines.
//
// There are three ways to create one, for different privileges:
//
//   - [New] creates an interface with the privileges of the process itself;
//   - [Helper] has qemu-bridge-helper create it, to which an administrator has
//     given the privilege (setuid, or CAP_NET_ADMIN on the file);
//   - [Prepare], in a process with CAP_NET_ADMIN, creates one for a user, and
//     [Open], in a process of that user without any privilege, takes it over. A
//     pod does so: only a container that ends before QEMU starts has the
//     capability.
//
// In each case, a [Device] is a set of descriptors, and the interface is deleted
// with the last of them, at the latest when QEMU ends.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package tap
