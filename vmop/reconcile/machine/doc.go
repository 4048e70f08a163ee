// Package machine decides about a machine in a cluster: [Decide] turns an
// observation into the writes, the status and the events that it calls for.
// Everything is a pure function; see [github.com/vmop/sdk/vmop/reconcile].
package machine
