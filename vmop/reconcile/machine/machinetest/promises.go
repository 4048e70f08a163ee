package machinetest

import (
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
)

// TestDecide fails if a decision about machines breaks one of the [Promises] in the worlds that
// rapid draws: as a subtest for each kind of worlds, and as many as -rapid.checks says. It logs
// the events until then and the broken promise; rapid shrinks the story, and logs how to repeat
// it.
//
// The decision is called by several goroutines, and must depend on its snapshot alone.
func TestDecide(t *testing.T, decide func(machine.Snapshot) reconcile.Plan) {
	for i := range worldKinds {
		t.Run(worldKinds[i].name, func(t *testing.T) {
			t.Parallel()
			worldKinds[i].hold(t, decide)
		})
	}
}

// Promises returns what [TestDecide] verifies of a decision, sorted. The message about a broken
// one begins with its name.
func Promises() []string { return slices.Clone(promised) }

var promised = []string{
	"a change of a class is told",
	"a configuration has the documents of its manifest",
	"a decision is respected",
	"a deleted machine gets nothing",
	"a disk has one machine",
	"a disk is not replaced without a word",
	"a disk stays for as long as the manifest has it",
	"a disk that comes and goes has one writer",
	"a disk that comes is attached",
	"a disk that comes restarts nothing",
	"a disk that left the manifest is detached",
	"a failed machine is started again after a delay",
	"a guest has what it is to have",
	"a guest is given the user data of its manifest",
	"a guest that cannot grow says so",
	"a guest uses what its pod has",
	"a machine gets what VM-Operator left",
	"a machine is held while it is there",
	"a machine is ready if its condition says so",
	"a machine is seen until its guest has ended",
	"a machine is started as its class says",
	"a machine that is deleted goes",
	"a machine that nobody hears of is unknown",
	"a machine with a pod is held",
	"a machine with disks that come and go runs",
	"a message is one line",
	"a node that does not resize pods is not asked to",
	"a person's attachment is left alone",
	"a phase says what is wanted",
	"a pod asks for what its guest has",
	"a pod finds what it needs",
	"a pod is deleted again only to hurry",
	"a pod is deleted by its UID",
	"a pod says how its requests came about",
	"a pod that goes is left alone",
	"a pod that has a disk needs no attachment",
	"a pod that has started is not replaced",
	"a pod that is left runs on",
	"a pod that runs as it should is left alone",
	"a request is carried out",
	"a reset by the guest applies what waits",
	"a reset is not lost",
	"a reset is not repeated",
	"a run policy is followed",
	"a snapshot is not changed",
	"a start is noted before there is a pod",
	"a start is told once for each phase",
	"a status fits the type",
	"a status is JSON",
	"a step that passes is looked at again",
	"a transition is a change of the status",
	"a wait that lasts is told",
	"a wake-up is in the future",
	"actions are known",
	"all conditions are present",
	"an end is kept",
	"an end is noted before there is another pod",
	"an event has an object and a next step",
	"an event is told once",
	"an event tells of a wait",
	"an invalid document is told",
	"at most one guest of a machine executes",
	"changes that need no approval do not wait",
	"conditions have true times",
	"equal snapshots give equal plans",
	"every wait is explained",
	"no claim shrinks",
	"no machine is started without its class",
	"no machine stops for its class",
	"nobody says that a guest on a lost node executes",
	"one pod of a machine is active",
	"only pods that have ended go with the last one",
	"only the runner with the guest reports",
	"only what VM-Operator left is given away",
	"only what is its own goes with a machine that wants it",
	"only what nobody needs goes",
	"only what was left is taken over",
	"phases are known",
	"phases do not flicker",
	"pods of others are left alone",
	"resets are never forgotten",
	"the guest has the time that it was given",
	"the kubelet is told of changes",
	"the record of phases is true",
	"the runner of the active pod may report",
	"the status has the pods of the machine",
	"the status is true",
	"the status names the generation it is about",
	"the world comes to rest",
	"user data is in a Secret of its own",
	"what a machine has run with is remembered",
	"what a machine is labelled with its pod is, too",
	"what is wanted is reached",
	"what is wrong with a class is told",
	"what is wrong with a class passes when it is corrected",
	"what may pass is told when it lasts",
	"what nobody needs goes",
	"what waits for a pod is not shown as reached",
	"what was given away is not given away again",
	"what was given away is remembered",
	"what was refused is not repeated at once",
	"who made a machine is noted as it was",
	"who made a machine is noted before it starts",
	"who made a machine is noted once",
}
