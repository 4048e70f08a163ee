// Package console decides how a user gets to the display of a machine: whether
// the user may open it ([MayOpen]), with which password ([Open]), where it is
// ([Locate]), and what a viewer is told ([ViewerFile]). It is for whoever builds a
// user interface on VirtualMachine resources. It only decides:
//
//  1. Ask [MayOpen], with the actions that package
//     [github.com/vmop/sdk/vmop/reconcile/pool] finds.
//  2. Carry out the [Plan] of [Open]: write User, then Password if there is one.
//     A conflict means that the view was old: read again and begin at 1. Then wait
//     for the machine to take the password, at most as long as the plan says.
//  3. Hand the user a [ViewerFile] as [MIMEType]; remote-viewer and virt-viewer
//     open it.
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package console
