// Command vm-operator looks after the virtual machines of a Kubernetes cluster:
// it makes the objects and the pod of each VirtualMachine resource and reports
// what becomes of them. What is to be done is decided by
// github.com/vmop/sdk/vmop/reconcile; this only observes and acts.
//
// It ends with exit code 0 when it was asked to (TERM or INT), 1 when it could
// not go on, such as after losing its leadership, and 2 when it was called or
// configured wrongly.
package main
