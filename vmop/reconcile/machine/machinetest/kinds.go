package machinetest

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"pgregory.net/rapid"
)

// worldKind is how a kind of worlds begins, what happens in it, and for how many steps.
type worldKind struct {
	name        string
	create      func(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world
	run         func(w *world, steps int) error
	least, most int
}

var (
	// Any event.
	machinesWorld = worldKind{"machines", newWorld, (*world).live, 100, 250}

	// Any event, with run policies.
	policiesWorld = worldKind{"policies", newPolicyWorld, (*world).live, 50, 200}

	// A guest may never use more than its pod has, in any order of events; finally it has what it
	// should have, or the status says why not.
	resizingWorld = worldKind{"resizing", newResizingWorld, (*world).resized, 20, 100}

	// A claim that the machine has run with, and that may be deleted at any time, is never
	// silently replaced; following the machine's conditions gets it running.
	claimsWorld = worldKind{"claims", newWorld, (*world).loseClaims, 20, 60}

	// Whatever happens to the machine, its manifest and its claims, and however late the operator
	// observes it, only the machine's own objects are deleted, and only if that is wanted.
	deletionWorld = worldKind{"deletion", newWorld, (*world).gives, 20, 60}

	// Labels and annotations of a machine are added to its pod and removed from it, and never the
	// operator's own.
	labelsWorld = worldKind{"labels", newWorld, (*world).labelled, 20, 60}

	// However machines are deleted without their pods and recreated, there is never a second
	// guest, and only a pod that an operator has released is taken over.
	orphansWorld = worldKind{"orphans", newWorld, (*world).leaves, 20, 60}

	// Changes of classes stop no running machine, none is started without its class, and waiting
	// changes and errors are reported.
	classesWorld = worldKind{"classes", newClassWorld, (*world).classed, 20, 60}

	// Whatever happens to the user data and its Secrets, it is stored nowhere else, a guest gets
	// that of its manifest, and unused objects are deleted.
	userDataWorld = worldKind{"user data", newUserDataWorld, (*world).provisioned, 20, 60}

	// Whatever happens to the cloud-init documents and the ConfigMap's note of them, they are in
	// the configuration, or reported as invalid.
	documentsWorld = worldKind{"documents", newDocumentsWorld, (*world).documented, 20, 60}

	// Whatever the names and number of a machine's pods, at most one guest executes, and all else
	// is as if its pod had the machine's name.
	namesWorld = worldKind{"names", newNamesWorld, (*world).live, 50, 150}

	// However disks are added and removed, and whenever the machine is stopped meanwhile, a disk
	// has one writer, the machine goes on, and finally it has what its manifest has.
	hotWorld = worldKind{"hot", newHotWorld, (*world).plugs, 20, 60}

	// A machine that the API server holds from its creation is treated like one that the operator
	// holds itself, without a write to that end.
	heldWorld = worldKind{"held", newHeldWorld, (*world).live, 50, 200}

	worldKinds = []worldKind{
		machinesWorld, policiesWorld, resizingWorld, claimsWorld, deletionWorld, labelsWorld, orphansWorld, classesWorld, userDataWorld, documentsWorld, namesWorld, hotWorld, heldWorld,
	}
)

func (k *worldKind) hold(t *testing.T, decide func(machine.Snapshot) reconcile.Plan) {
	t.Helper()
	steps := 0
	rapid.Check(t, func(t *rapid.T) {
		w := k.create(drawn(t), decide)
		err := k.run(w, rapid.IntRange(k.least, k.most).Draw(t, "steps"))
		steps += w.operations
		if err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(w.log, "\n"))
		}
	})
	t.Logf("%d steps", steps)
}

func drawn(t *rapid.T) func(string, int) int {
	return func(what string, n int) int {
		if n == 1 {
			return 0
		}
		return rapid.IntRange(0, n-1).Draw(t, what)
	}
}
