// Package pooltest has the world in which decisions about pools are tested: [pool.Decide],
// and whatever a program puts around it or in its place. There are machines and pools of
// two namespaces in it, people who ask for machines, use them and leave them, and an
// operator that sees all that later than it is.
//
// # Stability
//
// It is for tests, and changes with what they test.
package pooltest

import (
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/pool"
	"pgregory.net/rapid"
)

// TestDecide fails if a decision about pools breaks one of the [Promises] in the worlds that
// rapid draws: whatever users and caches do, and wherever an operator dies, no user loses a
// machine that is theirs or keeps one that is not, and a pool reports its sizes. It logs the
// events until then and the broken promise.
func TestDecide(t *testing.T, decide func(pool.Snapshot) reconcile.Plan) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.Decide = decide
		w.Hold(t, w.life)
	})
}

// Promises returns what [TestDecide] verifies of a decision, sorted. The message about a broken
// one begins with its name.
func Promises() []string { return slices.Clone(promised) }

var promised = []string{
	"a machine that is used is not taken",
	"a pool is counted anew after five seconds",
	"a snapshot is not changed",
	"a user has one machine of a pool",
	"a write says what it was decided on",
	"an assignment ends with its pool",
	"an unreadable pool is told of",
	"an unreadable pool is told of once",
	"equal snapshots give equal plans",
	"nobody loses a machine that is theirs",
	"only assignments are written",
	"the last use of a machine is known",
	"the sizes of a pool are true",
	"the world comes to rest",
	"what has expired is free",
	"what was refused is not repeated at once",
}
