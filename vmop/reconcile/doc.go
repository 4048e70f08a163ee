// Package reconcile decides. Every function turns what is wanted and what was
// observed into what should be, and touches nothing: there is no client, no
// clock, no file and no random number in it. The same arguments give the same
// result, byte for byte, and no argument is ever changed.
//
// The parts:
//
//   - [Disks] gives the entries of a manifest's disk list their names,
//   - [RunnerConfig] is the runner's configuration of a machine in a cluster,
//     [LocalRunnerConfig] that of the same machine on one host,
//   - [Changes] compares two manifests of one machine and tells which changes
//     reach a running machine and which wait for its next start,
//   - [Objects] lists the Kubernetes objects of a machine, each made by a
//     function of its own,
//   - [Decide] turns an observation of a machine in a cluster into the writes,
//     the status and the events that it calls for.
//
// All of them take a machine as it was written or as it is stored: they apply
// the defaults of [spec.Default] to a copy. They expect one that
// [spec.Validate] accepts; what it would refuse may be refused here again, or
// pass into the result unchanged.
package reconcile
