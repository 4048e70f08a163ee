// Package tunnel carries the protocol of a disk (NBD) from one pod to another within
// TLS: QEMU speaks with a UNIX socket at either end, and knows neither keys nor
// addresses. So the address of the other end may change between two connections, and
// no key is in a command line or a file of QEMU's.
//
// Both ends have a key, and each is configured with the fingerprint of the other's, as in
// SSH: there is no certificate authority, and names do not matter.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package tunnel
