// Package spec holds the API of vmop: the Go types of all its resources, from
// VirtualMachine and VmPool to disks, images, attachments, operations and
// classes, with their defaults, their validation and a strict loader that knows
// file and line. [Kinds] lists them.
//
// The group is vmoperator.jdrupes.org, the version v1. Every field, default
// and constraint of VM-Operator's resource definitions is kept, so that its
// manifests apply unchanged; fields that vmop adds say so in their comment.
//
// An object goes through four separate, visible steps:
//
//   - [Load] turns YAML or JSON into objects exactly as they were written,
//   - [Default] fills in what the resource definition's defaults would store,
//   - [Validate] and [ValidatePool] report everything that is wrong at once,
//   - after both, every field whose comment names a default is set and the
//     pointers among them can be followed without looking.
//
// [Load] does all of it at once if its options say so. Each of [Kinds] has these
// steps for programs that work on any kind.
//
// # Units
//
// Amounts of memory and storage are Kubernetes quantities (8Gi is 2^33 bytes,
// 1G is 10^9 bytes); [Bytes] gives the number of bytes. Periods are whole
// seconds unless a field says otherwise, and CPUs are whole CPUs.
//
// # Names
//
// Go names have Go's initialisms (CPUModel, MAC), but for the kinds and fields that
// VM-Operator's definitions write as a word: VmPool, Spice, UsbRedirects, Cdrom, Bootindex.
// In all other packages they are SPICE and USBRedirects.
//
// # Purity
//
// The package is a function of its arguments: it reads no file, no clock and
// no environment and talks to no cluster.
//
// +kubebuilder:object:generate=true
// +groupName=vmoperator.jdrupes.org
// +versionName=v1
//
// # Stability
//
// What is stored, sent or printed of it is kept; its Go interface may change in a
// release before 1.0, as package vmop says.
package spec
