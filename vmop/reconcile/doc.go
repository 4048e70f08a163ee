// Package reconcile has what the decisions about all kinds share: the [Plan] with
// its actions, statuses and events. The packages below it decide. Every function
// turns what is wanted and what was observed into what should be, and touches
// nothing: there is no client, no clock, no file and no random number in it. The
// same arguments give the same result, byte for byte, and no argument is changed.
//
// The parts:
//
//   - machineconfig: the runner's configuration of a machine, in a cluster and on
//     one host, and the names of its disks,
//   - objects: the Kubernetes objects of a machine,
//   - changes: the differences of two manifests of one machine, and which of them
//     reach a running machine and which wait for its next start,
//   - machine: an observation of a machine in a cluster becomes a plan,
//   - pool: who gets which machine of a pool,
//   - console: how a user gets to a display.
//
// All of them take a machine as it was written or as it is stored: they apply
// the defaults of spec.Default to a copy. They expect one that spec.Validate
// accepts; what it would refuse may be refused here again, or pass into the
// result unchanged.
//
// A nil pointer to an object that may be missing, as a snapshot says of each, stands for
// one that is not there. Functions of the packages machine and objects that take an
// object which must be there, the machine above all, do not look whether it is: they
// are called by the observer. Everything else in this module answers nil and
// zero values with an error, or with nothing.
package reconcile
