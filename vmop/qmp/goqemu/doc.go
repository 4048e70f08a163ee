// Package goqemu puts a client of package qmp behind the Monitor interface of
// github.com/digitalocean/go-qemu/qmp, so that go-qemu's typed commands in its package raw, its
// domain type, and whatever else was written for that interface run over this project's transport:
// replies of any size, any number of commands in flight, event bursts, and an end that is reported
// to all waiting callers.
//
// The interface has a context only in Events. A [Monitor] therefore gets one at its creation, which
// bounds all of its operations.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package goqemu
