// Package imageinspect looks into disk and seed images without a guest and
// without root: what format an image has, how large it is, which partitions and
// file systems are on it, and what a cloud-init seed says.
//
// Images are written by guests and by strangers. Nothing here mounts, executes or changes anything,
// other files that an image names are never opened, and no number in an image leads to an
// allocation or a loop of more than a few mebibytes or a few thousand steps. That is also why the
// readers are written here: a library for well-formed images trusts sizes and chains that a guest
// can choose.
//
// [Inspect] reports everything. [ProbeFormat] decides what matters for security: with which format
// QEMU may open an image.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package imageinspect
