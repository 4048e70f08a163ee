// Package disktest has the worlds in which decisions about disks and images are tested:
// [disk.Decide], and whatever a program puts around it or in its place. There is one disk
// or image in a world, with machines that use it, pods that fill it or read it, and an
// operator that sees all that later than it is.
//
// # Stability
//
// It is for tests, and changes with what they test.
package disktest

import (
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"pgregory.net/rapid"
)

type worldKind struct {
	name                     string
	image, cluster, restores bool
}

var (
	// Whatever disks, machines, pods and caches do, and wherever an operator dies, nothing is
	// lost or written twice, and a final state is reached.
	disks = worldKind{name: "disks"}

	// Images are made as disks are, and never changed once they exist.
	images = worldKind{name: "images", image: true}

	// Images of the cluster are made like those of a namespace, in theirs.
	clusterImages = worldKind{name: "cluster images", image: true, cluster: true}

	// Whatever happens to snapshots and provisioners, a volume that was not restored is never
	// taken for the disk.
	restoredDisks = worldKind{name: "disks of snapshots", restores: true}

	worldKinds = []worldKind{disks, images, clusterImages, restoredDisks}
)

func (k *worldKind) world(decide func(disk.Snapshot) reconcile.Plan) *world {
	w := newWorld()
	w.Decide, w.image, w.cluster, w.restores = decide, k.image, k.cluster, k.restores
	return w
}

// hold runs drawn worlds. If stale, caches may even be older than the operator's own writes.
func (k *worldKind) hold(t *rapid.T, stale bool, decide func(disk.Snapshot) reconcile.Plan) {
	w := k.world(decide)
	w.stale = stale
	w.Hold(t, w.life)
}

// TestDecide fails if a decision about disks and images breaks one of the [Promises] in the
// worlds that rapid draws, as a subtest for each kind of worlds. It logs the events until then
// and the broken promise.
//
// The decision is called by several goroutines, and must depend on its snapshot alone.
func TestDecide(t *testing.T, decide func(disk.Snapshot) reconcile.Plan) {
	for i := range worldKinds {
		t.Run(worldKinds[i].name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { worldKinds[i].hold(t, rapid.Bool().Draw(t, "stale"), decide) })
		})
	}
}

// Promises returns what [TestDecide] verifies of a decision, sorted. The message about a broken
// one begins with its name.
func Promises() []string { return slices.Clone(promised) }

var promised = []string{
	"a claim is made of a snapshot that it can be restored from",
	"a claim that is gone is not made anew",
	"a disk has not grown before its guest has it",
	"a disk is filled once",
	"a disk that a machine has is kept",
	"a disk that a pod has is kept",
	"a disk that has its content becomes ready",
	"a disk that is ready has its content",
	"a disk that nobody has can be deleted",
	"a download has a key of its own",
	"a download is given once for who asks for it",
	"a download only reads",
	"a message is one line",
	"a pod of somebody else is left alone",
	"a snapshot is not changed",
	"an image is written as one",
	"an upload has a key of its own",
	"an upload is awaited once for who asks for it",
	"attempts have pauses",
	"equal snapshots give equal plans",
	"no claim is deleted, and nothing is written over",
	"no claim shrinks",
	"nobody reads beside a writer",
	"nothing is given that is not there",
	"nothing is left of a disk",
	"nothing is put into a claim before that is noted",
	"nothing is put into a claim of somebody else",
	"progress does not go back",
	"the claim of an image stays as it was made",
	"the world comes to rest",
	"there is one writer",
	"what fails for good is not tried again",
	"what is awaited is told",
	"what is in the way is looked for again",
	"what is made for it is where it belongs",
	"what is not allowed is not fetched",
	"what is not filled is not called so",
	"what is not there is not told to be whole",
	"what no driver has restored is no disk",
	"who asks for a download is answered",
}
