// Package controller keeps the machines of a cluster as they should be. It
// observes them, has [github.com/vmop/sdk/vmop/reconcile] decide, and carries
// the decisions out: an `if` that a property test would want to see is not here.
//
// An [Operator] has a controller of controller-runtime for each kind: one reconciles
// machines, another the assignments of pools. They share a gate that lets nothing through
// unless the operator leads and the caches follow the API server.
//
// # Observing
//
// Objects are read from caches that watch the cluster and keep only what decisions need.
// A cache lags behind the cluster, and in particular behind the operator's own writes;
// therefore a machine is not reconciled again before the caches show what was written for
// it ([subjectMemory]). Objects that they do not show within a few seconds, and those that
// exist according to the API server although the caches lack them, are read from the API
// server.
//
// # Writing
//
// Every write carries the UID or the resource version that it was decided on. A write that
// the API server refuses is remembered as a [reconcile.Failure] and explained in the status
// of the machine; one that fails because the API server cannot be reached, or because the
// observation was old, is retried after a growing delay.
//
// # Outages
//
// Every request shows whether the API server answers. While it does not, one probe checks
// for it, and everything else waits: watches, so that their back-off does not grow,
// reconciliations, and the run for the lease. So an outage is one line of the log, costs
// nothing, and is over within seconds. It includes the time in which an API server that has
// just started forbids every request of service accounts, because it has not read the roles
// yet. Losing the lease ends the term and the work in progress, but neither the process nor
// its caches.
//
// # Many machines
//
// Namespaces take turns in the queue, and each has half of the workers at most; machines
// whose creation has begun go before others of their namespace. No worker waits.
//
// While a plan creates objects, its status is not written: the next observation follows at
// once, and has the status that stays.
package controller
