// Package takeover reports in advance what happens to a cluster of VM-Operator when vmop
// takes it over: what its owner has to do first, what will differ, machine by machine, and
// what stays.
//
// [Check] is a pure function of the objects that were found, in a cluster or in files. It changes
// and queries nothing; what could not be read is a finding, too. What a machine's pod requires of
// its namespace is derived from the pod that package reconcile would create, so that only one place
// decides it.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package takeover
