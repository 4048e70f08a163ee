// Package runnerconfig holds the runner's configuration: the file config.yaml
// that the operator writes into a ConfigMap and the runner reads.
//
// The format is VM-Operator's (its runner reads what [Marshal] writes, and
// [Parse] reads what its controller writes): a mapping whose key "/Runner"
// selects the component, RAM sizes as "4 GiB", networks and drives as flat
// lists. Keys that VM-Operator does not know are additions that its runner
// ignores.
//
// The package is pure: [Parse] decodes, [Default] fills in, [Validate] lists
// every problem, and [Machine] turns a configuration into the machine that
// package qemucmd builds a command line from. Nothing here touches files; what
// a caller must know about them is an argument.
//
// # Stability
//
// What is stored, sent or printed of it is kept; its Go interface may change in a
// release before 1.0, as package vmop says.
package runnerconfig
