// Package machineconfig makes the runner's configuration of a machine from its
// manifest: [ForCluster] for a pod, [ForHost] for one host. [Disks] gives the
// entries of a manifest's disk list their names. Everything is a pure function;
// see [github.com/vmop/sdk/vmop/reconcile].
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package machineconfig
