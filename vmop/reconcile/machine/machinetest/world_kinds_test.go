package machinetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"pgregory.net/rapid"
)

// worldKind is how a kind of worlds begins, what happens in it, and for how many
// steps.
type worldKind struct {
	create      func(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world
	run         func(w *world, steps int) error
	least, most int
	// mutants are noticed in it, in so many worlds.
	mutants []mutant
	worlds  uint64
}

// The kinds of worlds: whatever may happen to a machine, the same where people use run
// policies, machines that grow and shrink, claims that anybody deletes, machines
// that are deleted with what they have, machines that people label, and
// machines that are deleted without their pods, machines whose manifests have user data, and
// machines whose pods have other names.
func machinesWorld() worldKind {
	return worldKind{newWorld, (*world).live, 100, 250, machineMutants(), 400}
}

func policiesWorld() worldKind {
	return worldKind{newPolicyWorld, (*world).live, 50, 200, policyMutants(), 400}
}

func resizingWorld() worldKind {
	return worldKind{newResizingWorld, (*world).resized, 20, 100, resizingMutants(), 400}
}

func claimsWorld() worldKind {
	return worldKind{newWorld, (*world).loseClaims, 20, 60, claimMutants(), 400}
}

func deletionWorld() worldKind {
	return worldKind{newWorld, (*world).gives, 20, 60, deletionMutants(), 600}
}

func labelsWorld() worldKind {
	return worldKind{newWorld, (*world).labelled, 20, 60, labelMutants(), 400}
}

func orphansWorld() worldKind {
	return worldKind{newWorld, (*world).leaves, 20, 60, orphanMutants(), 600}
}

func namesWorld() worldKind {
	return worldKind{newNamesWorld, (*world).live, 50, 150, nameMutants(), 400}
}

func userDataWorld() worldKind {
	return worldKind{newUserDataWorld, (*world).provisioned, 20, 60, userDataMutants(), 400}
}

func hotWorld() worldKind {
	return worldKind{newHotWorld, (*world).plugs, 20, 60, hotMutants(), 400}
}

func worldKinds() map[string]worldKind {
	return map[string]worldKind{
		"machines": machinesWorld(), "policies": policiesWorld(), "resizing": resizingWorld(),
		"claims": claimsWorld(), "deletion": deletionWorld(), "labels": labelsWorld(), "orphans": orphansWorld(), "classes": classesWorld(),
		"user data": userDataWorld(), "names": namesWorld(), "hot": hotWorld(),
	}
}

// hold runs drawn worlds of the kind for a drawn number of steps.
func (k worldKind) hold(t *testing.T) {
	t.Helper()
	seed(t)
	t.Parallel()
	steps := 0
	rapid.Check(t, func(t *rapid.T) {
		w := k.create(drawn(t), decideOnLess)
		err := k.run(w, rapid.IntRange(k.least, k.most).Draw(t, "steps"))
		steps += w.operations
		if err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(w.log, "\n"))
		}
	})
	t.Logf("%d steps", steps)
}

// broken runs worlds of the kind until a promise is broken.
func (k worldKind) broken(decide func(machine.Snapshot) reconcile.Plan, worlds uint64) (violation, bool) {
	for n := range worlds {
		w := k.create(random(n), decide)
		var v violation
		if errors.As(k.run(w, min(k.most, 150)), &v) {
			return v, true
		}
	}
	return violation{}, false
}

// TestPromises runs at least ten thousand steps with rapid's own number of
// checks.
func TestPromises(t *testing.T) { machinesWorld().hold(t) }

// TestPromisesOfRunPolicies has the same promises, and those of run policies, where
// people use them.
func TestPromisesOfRunPolicies(t *testing.T) { policiesWorld().hold(t) }

// What a guest may use never exceeds what its pod has, whatever happens in which
// order; and in the end it has what it is to have, or says why not.
func TestPromisesOfResizing(t *testing.T) { resizingWorld().hold(t) }

// A claim that the machine has run with, and that anybody deletes at any time, is not
// replaced without a word; and whoever does what the machine says has it running.
func TestPromisesOfClaims(t *testing.T) { claimsWorld().hold(t) }

// However machines are deleted without their pods and made again: there is never a
// second guest, and only a pod that an operator has let go is taken over.
func TestPromisesOfOrphans(t *testing.T) { orphansWorld().hold(t) }

// Labels and annotations of a machine come to its pod and go from it, whatever happens
// meanwhile, and nothing of the operator's with them.
func TestPromisesOfLabels(t *testing.T) { labelsWorld().hold(t) }

// Whatever becomes of a machine, of its manifest and of its claims, and however late
// the operator sees it: what is destroyed is its own, and wanted to be.
func TestPromisesOfDeletion(t *testing.T) { deletionWorld().hold(t) }

// Whatever becomes of classes, no machine that runs stops for that, none is started
// without its class, and what waits or is wrong is told.
func TestPromisesOfClasses(t *testing.T) { classesWorld().hold(t) }

// Whoever adds disks to the manifest of a machine that runs, or takes them from it again,
// and whenever the machine is stopped meanwhile: a disk has one writer, the machine goes on,
// and in the end it has what its manifest has.
func TestPromisesOfDisksThatComeAndGo(t *testing.T) { hotWorld().hold(t) }

// Whatever the pods of a machine are called, and however many there are: never more than
// one guest of it executes, and all else is as if its pod had the machine's name.
func TestPromisesOfNames(t *testing.T) { namesWorld().hold(t) }

// Whoever changes the user data in a manifest, and whatever becomes of the Secrets with
// it: it is nowhere else, a guest is given that of its manifest, and what nobody needs
// goes.
func TestPromisesOfUserData(t *testing.T) { userDataWorld().hold(t) }
