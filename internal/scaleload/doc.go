// Command scaleload measures an operator that has many machines, on a real etcd and
// kube-apiserver, and prints a table. What a scheduler, nodes, volumes and runners do
// is done by a stand-in at once, so that what is measured is the operator and the API
// server: times are of the processors that they share with the load, the counts and
// the processor time for each machine are what to compare.
//
//	go run ./internal/scaleload -operator bin/vm-operator -machines 1000
package main
