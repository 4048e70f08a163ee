// Package operation decides about the operations of a machine ([spec.VirtualMachineOperation]):
// which of them is begun, whether it is done, which is refused and why, and which are cleaned up.
// Like everything below [github.com/vmop/sdk/vmop/reconcile] it only decides.
//
// # How a machine receives a request
//
// All operations of a machine are decided about together ([Decide]), so that one at most is in
// progress. A request reaches the machine as any other does: by the annotation
// [names.AnnotationPowerRequest], whose value names the operation, [names.AnnotationForceStop], and
// spec.vm.state if the machine has no run policy. How a machine answers is decided in one place, by
// package machine, for all requests.
//
// # Never twice
//
// One plan of two writes makes an operation InProgress and then writes the request to the machine;
// the API server takes each only if the object is as it was seen. Should the operator die between
// them, the next one sees an operation that is in progress, and a machine that does not have the
// request, and makes both writes again: the first of them fails if the operation has moved on
// meanwhile, however old the caches are. The status records that the request was written; from then
// on the machine is only observed.
//
// # An end for each
//
// What is refused ends Failed and has changed nothing. What is begun has a deadline, which is in
// its status. A restart that could not begin until then is taken back; a machine that is to start
// or to stop goes on with it.
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package operation
