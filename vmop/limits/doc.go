// Package limits defines the limits of a machine, once for all that describe one: the
// manifest (package spec), the runner's configuration (package runnerconfig) and QEMU's
// command line (package qemucmd). What one of them accepts, the next does not refuse.
//
// The functions return nil, or an error whose text continues a sentence about the value ("… must be
// a MAC address such as 52:54:00:ab:cd:ef"). The text contains neither the value nor the object and
// field, which the caller knows. The package imports the standard library only, and its functions
// depend on their arguments alone.
//
// The limits are those of QEMU 7.2 and the machine that package qemucmd builds. They can become
// wider in later versions, never narrower.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package limits
