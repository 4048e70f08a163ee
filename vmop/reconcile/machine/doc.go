// Package machine decides about a machine in a cluster: [Decide] turns an
// observation into the writes, the status and the events that it calls for.
// Everything is a pure function; see [github.com/vmop/sdk/vmop/reconcile].
//
// What Decide promises is tested in machinetest, as are most of its decisions: there is
// a world there in which they are carried out, for other people's decisions, too.
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package machine
