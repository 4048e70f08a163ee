// Package operation decides about the operations of a machine
// ([spec.VirtualMachineOperation]): which of them is begun, whether it is done, which
// is refused and why, and which are cleaned up. Like everything below
// [github.com/vmop/sdk/vmop/reconcile] it only decides.
//
// # How the machine is told
//
// All operations of a machine are decided about together ([Decide]), so that one at
// most is in progress. The machine is told by what tells it of a wish in any other
// case: the annotation [names.AnnotationPowerRequest], whose value names the operation,
// [names.AnnotationForceStop], and spec.vm.state if the machine has no run policy. How
// a machine answers is decided in one place, by package machine, for requests of both
// kinds.
//
// # Never twice
//
// An operation first becomes InProgress and then the machine is told, in one plan of
// two writes, each of which the API server takes only if the object is as it was seen.
// Should the operator die between them, the next one sees an operation that is in
// progress, and a machine that does not have the request, and makes both writes again:
// the first of them fails if the operation has moved on meanwhile, however old the
// caches are. That the machine was told is noted in the status; from then on it is
// only looked at.
//
// # An end for each
//
// What is refused ends Failed and has changed nothing. What is begun has a deadline,
// which is in its status. A restart that could not begin until then is taken back;
// a machine that is to start or to stop goes on with it.
package operation
