// Package operationtest has the world in which decisions about the operations of machines
// are tested: [operation.Decide], and whatever a program puts around it or in its place.
// There are machines that do what they do by themselves, people who ask for operations,
// and an operator that sees all that later than it is.
//
// The scripts of [Play] have these lines. Operations have names that people choose.
//
//	machine a is Running                         or Pending, or Stopped, for long
//	machine a is Stopped with policy Manual      which has a run policy
//	machine a goes on                            it does its next step
//	machine a may not be written                 the API server refuses that; may be written
//	machine a is held, Pending                   it runs on when it is told to restart; or Blocked, or free
//	machine a is gone                            its manifest and its pod are
//	person asks x: Stop of a                     x is the operation
//	person asks x: Stop of a by force            which does not wait for the guest
//	person deletes x
//	wait 40s                                     s, m or h
//	reconcile                                    the operator, until nothing is left to do
//
// # Stability
//
// It is for tests, and changes with what they test.
package operationtest

import (
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"pgregory.net/rapid"
)

// TestDecide fails if a decision about operations breaks one of the [Promises] in the worlds that
// rapid draws. It logs the events until then and the broken promise.
func TestDecide(t *testing.T, decide func(operation.Snapshot) reconcile.Plan) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) { hold(t, rapid.Bool().Draw(t, "stale"), decide) })
}

// hold runs a drawn life, in which no promise is broken: whatever machines, users and caches do,
// and wherever an operator dies, at most one operation of a machine is in progress, none is
// carried out twice or in vain, each ends in its time, and refused ones change nothing.
func hold(t *rapid.T, stale bool, decide func(operation.Snapshot) reconcile.Plan) {
	w := newWorld()
	w.Decide, w.stale = decide, stale
	w.Hold(t, w.life)
}

// Promises returns what [TestDecide] verifies of a decision, sorted. The message about a broken
// one begins with its name.
func Promises() []string { return slices.Clone(promised) }

var promised = []string{
	"a machine gets requests and a state, and nothing else",
	"a machine is told in time",
	"a machine is told itself",
	"a machine is told of what is in progress",
	"a machine is told once",
	"a message is one line",
	"a request names its operation",
	"a restart is a new pod",
	"a restart that cannot begin ends soon",
	"a restart that does not begin says why",
	"a snapshot is not changed",
	"equal snapshots give equal plans",
	"every operation ends",
	"no operation is held for ever",
	"nothing else is written",
	"one operation of a machine is in progress",
	"only what has ended is cleaned up",
	"phases come in their order",
	"the status of the machine's own operations is written",
	"the world comes to rest",
	"what has ended is cleaned up",
	"what has ended says when",
	"what has failed says why",
	"what is done was asked of the machine",
	"what is in progress says since when, until when and of what",
	"what is new is not cleaned up",
	"what was changed is not carried out",
	"what was refused has changed nothing",
}
