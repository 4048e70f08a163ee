package disktest

import (
	"testing"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"pgregory.net/rapid"
)

func TestPromisesOfDisks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { disks.hold(t, false, disk.Decide) })
}

func TestPromisesOfImages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { images.hold(t, false, disk.Decide) })
}

func TestPromisesOfClusterImages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { clusterImages.hold(t, false, disk.Decide) })
}

func TestPromisesOfDisksOfSnapshots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { restoredDisks.hold(t, rapid.Bool().Draw(t, "stale"), disk.Decide) })
}

// Caches that are older than what the operator itself has written are no reason for less.
func TestPromisesOfDisksWithOldCaches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(worldKinds[:3]).Draw(t, "kind")
		k.hold(t, true, disk.Decide)
	})
}

// Promises lists what the worlds look at, and nothing else.
func TestEveryPromiseIsListed(t *testing.T) { promises.Listed(t, Promises()) }
