// Command vm-operator looks after the virtual machines of a Kubernetes cluster:
// it makes the objects and the pod of each VirtualMachine resource and reports
// what becomes of them. What is to be done is decided by
// github.com/vmop/sdk/vmop/reconcile; this only observes and acts.
//
// It ends with exit code 0 when it was asked to (TERM or INT), 1 when it could
// not go on, and 2 when it was called or configured wrongly. An API server that is
// away, definitions that are still to come and a lease that somebody else has are
// waited for.
package main
