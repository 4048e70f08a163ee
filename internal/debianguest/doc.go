// Package debianguest builds the Debian guest that tests boot where cloud-init
// and the guest agent themselves are under test: a root file system with both,
// and the kernel and initial RAM disk to boot it directly.
//
// The guest is made from Debian's packages, fetched from the mirror that the
// host's apt is configured for. Building takes about a minute and root; the
// result is kept in the user's cache directory, so that it happens once per
// machine and recipe. The image has an SSH server, no network configuration and
// no password: everything a test needs comes from its cloud-init seed.
//
// [EnsureBase] makes the system that container images are built on, likewise.
package debianguest
