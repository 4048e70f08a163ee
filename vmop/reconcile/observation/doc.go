// Package observation decides, for a program that observes a cluster for
// [github.com/vmop/sdk/vmop/reconcile], what it may believe and when it may act on it. Like all decisions it is pure: times are arguments, and nothing is read.
//
//   - [Starts] says when a machine may be given its pod, so that of several that
//     share a disk only one gets one.
//   - [Refused], [Stale], [Answered] and [Unreachable] say what the error of a request
//     to the API server means: whether it is meant, whether the observation was old,
//     whether it is certain that nothing was done, and whether nobody is there.
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package observation
