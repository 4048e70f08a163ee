// Package machinetest has the worlds in which decisions about machines are tested:
// [machine.Decide], and whatever a program puts around it or in its place.
//
// A world is a model of a cluster with one machine: an API server, the caches through
// which an operator sees it later than it is, nodes, runners, controllers and people. An
// operator in it writes what a decision says, one action after the other, and may be
// refused or killed between any two. [TestDecide] draws worlds, and looks after each step
// whether all is as promised; [Promises] lists what. [Play] tells one story that somebody
// has written, for tests whose result is to be read.
//
// # Stories
//
// Each line of a script is something that happens. Lines that begin with # say nothing.
// The world begins with a machine named web that is to run. These act:
//
//	reconcile                     the operator, until nothing is left to do
//	reconcile seeing-the-machine-of 03:05:05
//	                              the operator, once, as one that is new and sees the machine
//	                              as it was at that time
//	operator is-replaced          an operator that knows of no refusal
//	api-server refuses ConfigMap  the API server, which takes no write of a kind
//	api-server takes ConfigMap    the same, when it takes them again
//	waits are-read                somebody who reads what the status waits for
//	wait 40s                      nobody, for a while: s, m or h
//	kubelet schedule start        those who place and run the pod: schedule, start, removes,
//	                              ends-it, unschedulable, pull-error, evict
//	runner reports                the runner, when the guest is further than before
//	runner ends guest-shutdown    the runner, with a [runnerconfig.Cause]
//	node-dies n1                  a node, which answers nobody any more
//	node-lives n1                 the same, when it answers again
//	volumes are-awaited           nobody makes volumes for claims
//	volumes are-made              somebody does
//	garbage-collector             that of the cluster, for what has lost its owner
//	claim NAME is-deleted         somebody who deletes a claim
//	claim NAME is-restored        somebody who has a backup of all claims
//	secret NAME has-type TYPE     somebody who makes a Secret for the guest
//	secret NAME is-deleted        somebody who deletes it
//	class NAME is-made 2          somebody who makes a class of so many cores at least
//	class NAME is-deleted         somebody who deletes it
//	vm-operator                   VM-Operator, which has run the machine until now
//	vm-operator 3.4               its version 3.4, or a later one
//	person stops                  the machine's owner
//
// An owner starts, stops, grows, shrinks, breaks, sets-cpus, sets-timeout 30,
// sets-policy Manual, sets-image IMAGE, labels KEY=VALUE, provisions-by SECRET,
// names-class NAME, wants-shutdown-to-stop, wants-new-disks, wants-nodes KEY=VALUE,
// wants-to-be-with KEY=VALUE, wants-to-be-apart-from KEY=VALUE, approves-restarts,
// asks-for start, asks-for-reset, forces-stop, deletes-pod, deletes-machine, orphans-pod
// and makes-machine-again.
//
// # Stability
//
// It is for tests, and changes with what they test.
package machinetest
