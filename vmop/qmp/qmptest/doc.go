// Package qmptest provides a fake QMP monitor for tests: for faults that a real QEMU will not
// produce on request, and for tests that run without one.
//
// A [Server] speaks the real protocol on one side of a connection: greeting, capability
// negotiation, replies with ids, refusals, events, out-of-band execution, received files. A
// [Handler] decides what a command does. It may reply, reply later or never or in another order,
// send events or invalid bytes, or close the connection.
//
// The connection may be any: [Pipe] for tests, also in a testing/synctest bubble, [SocketPair]
// where files are passed, an accepted connection where the code under test dials.
//
// # Stability
//
// It is for tests, and changes with what they test.
package qmptest
