// Package attachment decides about disks that are attached to machines while they run
// (spec.VirtualMachineBlockDeviceAttachment): [Decide] turns what was observed of one
// into the writes, the status and the events that it calls for.
//
// No volume can be mounted into a pod that runs. So a pod beside the machine's has the
// volume and exports it, to the one run of the machine whose key it was given, and the
// machine's runner plugs what it exports. What both need to know of each other stands in
// the status of the attachment (spec.AttachmentConnection), which nobody but the operator
// writes, and from there in the runner's configuration:
//
//   - the finalizer, so that nobody makes the attachment disappear with its pod;
//   - the Secret with the exporter's key;
//   - a connection for the machine's pod, without an address: the runner makes a key for
//     this run, and reports by which fingerprint it is known;
//   - that key in the connection, and then the pod that exports to it, if no other pod
//     has the claim;
//   - the pod's address in the connection, so that the runner plugs the disk;
//   - when the runner reports that, the disk is attached.
//
// The way back begins with the connection's detach. The exporter is deleted when the
// runner reports that the guest has released the disk and its last writes are on the
// storage, or when the machine's pod has ended; and only when the exporter is gone the
// connection is forgotten and the attachment let go.
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package attachment
