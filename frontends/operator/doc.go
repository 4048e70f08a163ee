// Command vm-operator looks after the virtual machines of a Kubernetes cluster:
// it makes the objects and the pod of each VirtualMachine resource and reports
// what becomes of them. What is to be done is decided by
// github.com/vmop/sdk/vmop/reconcile; this only observes and acts.
//
// It exits with 0 after TERM or INT, with 1 after a fatal error, and with 2 after a wrong
// invocation or configuration. It waits for an API server that cannot be reached, for
// missing definitions and for a lease that another operator holds.
package main
