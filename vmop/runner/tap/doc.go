// Package tap makes and opens the tap interfaces of machines.
//
// There are three ways to one, by who may do what:
//
//   - [New] makes an interface with the privileges of the process itself;
//   - [Helper] has qemu-bridge-helper make it, which an administrator has given
//     the right to do so (setuid, or CAP_NET_ADMIN on the file);
//   - [Prepare], in a process with CAP_NET_ADMIN, makes one for a user, and
//     [Open], in a process of that user without any privilege, takes it over. So
//     it is in a pod, where only a container that ends before QEMU starts has the
//     capability.
//
// Whichever way it came, a [Device] is a set of descriptors, and the interface
// ends with the last of them: when QEMU ends, however it ends, nothing is left.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package tap
