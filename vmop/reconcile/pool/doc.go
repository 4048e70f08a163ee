// Package pool decides who may do what with a machine and which machine of a pool a user gets. It
// is for whoever builds a user interface on VirtualMachine and VmPool resources, and for the
// operator; like everything below [github.com/vmop/sdk/vmop/reconcile] it only decides.
//
// A user interface needs three things:
//
//  1. [MachineActions] and [PoolActions] return what a user may do with a machine that is addressed
//     directly, and with one that was got through a pool. Do not show it to a user who may do
//     nothing.
//  2. [Assign] finds the machine of a pool for a user. Its [Decision] is carried out by writing
//     Update, if there is one, and then starting the machine, if Start is set. A write that fails
//     with a conflict means that the view was old: read again and decide again.
//  3. [github.com/vmop/sdk/vmop/reconcile/console] opens the machine's display.
//
// The operator calls [Decide] with the machines and pools of a namespace, and carries out its plan.
// [LoginUser] is the user that the guest's agent is to log in.
//
// # Writing an assignment
//
// [Update.Patch] is a JSON merge patch for the subresource status, to be sent with the field
// manager [StatusManager]. It carries the resource version of the machine that the decision was
// made on, so that of two writers who saw the same machine one gets a conflict: no machine is given
// away twice. It is no server-side apply, because that cannot remove what another program has
// written, such as an assignment of VM-Operator.
//
// The resource version guards one machine. The same user asking twice at once, with views of
// different age, may be given two machines; [Assign] then returns the same one of them to both, and
// [Upkeep] takes back the other.
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package pool
