// Package changes compares two manifests of one machine: [Between] lists the
// differences and says which reach a running machine and which wait for its next
// start. Everything is a pure function; see [github.com/vmop/sdk/vmop/reconcile].
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package changes
