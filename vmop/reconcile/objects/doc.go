// Package objects makes the Kubernetes objects of a machine, each by a function
// of its own, and knows their names. Everything is a pure function; see
// [github.com/vmop/sdk/vmop/reconcile].
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package objects
