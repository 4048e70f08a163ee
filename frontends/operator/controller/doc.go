// Package controller keeps the machines of a cluster as they should be. It
// observes them, has [github.com/vmop/sdk/vmop/reconcile] decide, and carries
// the decisions out: an `if` that a property test would want to see is not here.
//
// An [Operator] has a controller of controller-runtime for each kind: one reconciles machines,
// the other keeps up the assignments of pools. Before both is a gate that lets
// nothing through unless the operator leads and the caches follow the API server.
//
// # Observing
//
// All that is read comes from caches that watch the cluster and keep of each
// object only what decisions look at. A cache is always a little behind, most of
// all behind the operator's own writes; therefore a machine is not looked at
// again before the caches show what was written for it ([subjectMemory]). What
// they do not show within a few seconds, and what the API server says to exist
// though they do not show it, is read from the API server itself.
//
// # Writing
//
// Every write carries the UID or the resource version that it was decided on.
// What the API server refuses is remembered as a [reconcile.Failure] and
// explained in the status of the machine; what fails because the API server
// cannot be reached, or because the observation was old, is tried again after a
// growing delay.
//
// # Outages
//
// Every request tells whether the API server answers. While it does not, one probe
// looks for it, and everything else waits: watches, so that their back-off does not
// grow, reconciliations, and the run for the lease. So an outage is one line of the
// log, costs nothing, and is over within seconds. An API server that has just started
// refuses service accounts whatever they ask until it has read the roles, which is part
// of the outage. Losing the lease ends the term and
// what is under way in it, but neither the process nor its caches.
//
// # Many machines
//
// Namespaces have their turns in the queue, and half of the workers at most; machines
// that were begun go before others of their namespace. Nothing waits in a worker.
//
// While a plan makes objects, its status is not written: the next observation
// follows at once, and its status is the one that stays.
package controller
