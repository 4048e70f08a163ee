// Package takeover says beforehand what becomes of a cluster of VM-Operator
// when vmop takes it over: what somebody has to do first, what will be
// different, machine by machine, and what stays.
//
// [Check] is a pure function of the objects that were found, in a cluster or in
// files. It changes nothing and asks nobody; what could not be looked at is a
// finding, too. That a machine's pod needs this or that of its namespace is read
// from the pod that package reconcile would make, so that there is one place
// that decides it.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package takeover
