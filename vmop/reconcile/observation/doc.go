// Package observation has the decisions of whoever observes a cluster for
// [github.com/vmop/sdk/vmop/reconcile]: what it may believe and when it may act on
// it. Like all decisions it is pure: times are arguments, and nothing is read.
//
//   - [Starts] says when a machine may be given its pod, so that of several that
//     share a disk only one gets one.
package observation
