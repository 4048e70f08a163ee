// Package reconcile has what the decisions about all kinds share: the [Plan] with
// its actions, statuses and events. The packages below it decide. Every function
// turns what is wanted and what was observed into what should be, and touches
// nothing: there is no client, no clock, no file and no random number in it. The
// same arguments give the same result, byte for byte, and no argument is changed.
//
// Those that decide have a Snapshot and a function Decide, which makes a plan of it:
//
//   - machine: a machine in a cluster,
//   - pool: who gets which machine of a pool,
//   - operation: the operations of a machine, such as a restart,
//   - disk: disks and images that exist by themselves,
//   - attachment: disks that are attached to machines while they run.
//
// What they promise is tested in worlds, in packages below theirs (machinetest, pooltest
// and so on). Whoever decides otherwise, or adds to a decision, has a test there that it
// keeps the same promises.
//
// The others make what those and programs need:
//
//   - machineconfig: the runner's configuration of a machine, in a cluster and on
//     one host, and the names of its disks,
//   - objects: the Kubernetes objects of a machine,
//   - changes: the differences of two manifests of one machine, and which of them
//     reach a running machine and which wait for its next start,
//   - console: how a user gets to a display,
//   - observation: what whoever observes a cluster may believe, and when it may act.
//
// # What a driver does
//
// Who carries plans out keeps to this, for one subject at a time:
//
//  1. It makes a snapshot, in which nil says that there is no such object. Whoever
//     could not read one has an error and no snapshot. As long as its caches do not
//     show what it has written, it waits.
//  2. It decides.
//  3. Before a plan with [Plan.StartsPod] it has the machine's turn
//     (observation.Starts) and the pods that no cache shows, and so for a copy of a
//     disk that begins (disk.CopiesDisk); before one with
//     [Plan.Releases] it looks for a pod at the API server, and before one with
//     [Plan.DeletesClaims] at the object itself. With what it finds it decides anew.
//  4. It executes the actions in their order, up to the first that fails; or one of
//     the [Batches] after the other, up to one in which something fails, and those of
//     a batch at once. Each is bound to the UID and the version in it, and NotFound is
//     success where the action says so.
//  5. A failure because the observation was old (observation.Stale) is a cause to
//     look again, after a pause that grows. One that the API server means
//     (observation.Refused) becomes a [Failure], with how often it happened in a row,
//     in all snapshots until the same write succeeds. Any other is tried again.
//  6. When all actions were executed, it writes the statuses, those with a version
//     first, and tells the events. A status may wait for the next decision if the
//     plan did nothing but make objects, or is Passing. A refused status goes through
//     [Unreported].
//  7. It looks again when something changes, and at the plan's Wake.
//
// In code, without caches and their delay:
//
//	for {
//		snapshot, err := observe() // with the failures
//		if err != nil {
//			retry(err)
//			continue
//		}
//		plan := machine.Decide(snapshot)
//		if plan.StartsPod() || plan.Releases() {
//			plan = machine.Decide(lookCloser(snapshot))
//		}
//		if failed, err := execute(plan.Actions); err != nil {
//			switch {
//			case observation.Refused(err):
//				remember(failed.Target(), err)
//			case !observation.Stale(err):
//				retry(err)
//			}
//			continue
//		}
//		report(plan.Statuses, plan.Events)
//		wait(plan.Wake) // or for a change
//	}
//
// One program at a time does this for a cluster, as the operator does by its lease.
//
// # What the functions expect
//
// All of them take a machine as it was written or as it is stored: they apply
// the defaults of spec.Default to a copy. They expect one that spec.Validate
// accepts; what it would refuse may be refused here again, or pass into the
// result unchanged.
//
// A nil pointer to an object that may be missing, as a snapshot says of each, stands for
// one that is not there. Functions of the packages machine and objects that take an
// object which must be there, the machine above all, do not look whether it is: they
// are called by the observer. Everything else in this module answers nil and
// zero values with an error, or with nothing.
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package reconcile
