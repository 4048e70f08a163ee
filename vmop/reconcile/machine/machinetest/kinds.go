package machinetest

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"pgregory.net/rapid"
)

// worldKind is how a kind of worlds begins, what happens in it, and for how many
// steps.
type worldKind struct {
	name        string
	create      func(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world
	run         func(w *world, steps int) error
	least, most int
}

var (
	// Whatever may happen to a machine.
	machinesWorld = worldKind{"machines", newWorld, (*world).live, 100, 250}

	// The same where people use run policies.
	policiesWorld = worldKind{"policies", newPolicyWorld, (*world).live, 50, 200}

	// What a guest may use never exceeds what its pod has, whatever happens in which
	// order; and in the end it has what it is to have, or says why not.
	resizingWorld = worldKind{"resizing", newResizingWorld, (*world).resized, 20, 100}

	// A claim that the machine has run with, and that anybody deletes at any time, is not
	// replaced without a word; and whoever does what the machine says has it running.
	claimsWorld = worldKind{"claims", newWorld, (*world).loseClaims, 20, 60}

	// Whatever becomes of a machine, of its manifest and of its claims, and however late
	// the operator sees it: what is destroyed is its own, and wanted to be.
	deletionWorld = worldKind{"deletion", newWorld, (*world).gives, 20, 60}

	// Labels and annotations of a machine come to its pod and go from it, whatever happens
	// meanwhile, and nothing of the operator's with them.
	labelsWorld = worldKind{"labels", newWorld, (*world).labelled, 20, 60}

	// However machines are deleted without their pods and made again: there is never a
	// second guest, and only a pod that an operator has let go is taken over.
	orphansWorld = worldKind{"orphans", newWorld, (*world).leaves, 20, 60}

	// Whatever becomes of classes, no machine that runs stops for that, none is started
	// without its class, and what waits or is wrong is told.
	classesWorld = worldKind{"classes", newClassWorld, (*world).classed, 20, 60}

	// Whoever changes the user data in a manifest, and whatever becomes of the Secrets with
	// it: it is nowhere else, a guest is given that of its manifest, and what nobody needs
	// goes.
	userDataWorld = worldKind{"user data", newUserDataWorld, (*world).provisioned, 20, 60}

	// Whoever changes the documents for cloud-init in a manifest, and whatever becomes of what
	// the ConfigMap notes of them: they are in the configuration, or it is told that they are
	// not valid.
	documentsWorld = worldKind{"documents", newDocumentsWorld, (*world).documented, 20, 60}

	// Whatever the pods of a machine are called, and however many there are: never more than
	// one guest of it executes, and all else is as if its pod had the machine's name.
	namesWorld = worldKind{"names", newNamesWorld, (*world).live, 50, 150}

	// Whoever adds disks to the manifest of a machine that runs, or takes them from it again,
	// and whenever the machine is stopped meanwhile: a disk has one writer, the machine goes
	// on, and in the end it has what its manifest has.
	hotWorld = worldKind{"hot", newHotWorld, (*world).plugs, 20, 60}

	worldKinds = []worldKind{
		machinesWorld, policiesWorld, resizingWorld, claimsWorld, deletionWorld, labelsWorld, orphansWorld, classesWorld, userDataWorld, documentsWorld, namesWorld, hotWorld,
	}
)

// hold runs drawn worlds of the kind for a drawn number of steps.
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

// drawn is a choice that rapid makes.
func drawn(t *rapid.T) func(string, int) int {
	return func(what string, n int) int {
		if n == 1 {
			return 0
		}
		return rapid.IntRange(0, n-1).Draw(t, what)
	}
}
