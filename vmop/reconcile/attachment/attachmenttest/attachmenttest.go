// Package attachmenttest has the world in which decisions about attachments are tested:
// [attachment.Decide], and whatever a program puts around it or in its place. There are
// two machines in it, two attachments of one claim, runners, kubelets and whoever else has
// a pod with the claim, and an operator that sees all that later than it is.
//
// # Stability
//
// It is for tests, and changes with what they test.
package attachmenttest

import (
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/attachment"
	"pgregory.net/rapid"
)

// TestDecide fails if a decision about attachments breaks one of the [Promises] in the worlds
// that rapid draws. It logs the events until then and the broken promise.
func TestDecide(t *testing.T, decide func(attachment.Snapshot) reconcile.Plan) {
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
	"a connection is for the run that there is",
	"a guest has its disk until it has released it",
	"a machine starts without what does not end",
	"a message is one line",
	"a pod of somebody else is left alone",
	"a snapshot is not changed",
	"equal snapshots give equal plans",
	"nothing else is written",
	"nothing is left of an attachment",
	"the next pod has what is attached",
	"the world comes to rest",
	"there is one writer",
	"what can be attached is attached",
	"what has an exporter is held",
	"what is attached is there",
	"what is awaited is told",
	"what is deleted goes",
	"what is in the way is looked for again",
}
