// Package objects builds the Kubernetes objects of a machine, each by a function of its
// own, and defines their names. Everything is a pure function; see
// [github.com/vmop/sdk/vmop/reconcile].
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package objects
