// Package qmp is a client for the QEMU Machine Protocol: the JSON messages that query and control a
// running QEMU, and by which it reports events.
//
// A [Client] is one connection to one monitor socket. [Do] runs a command type, of this package or
// your own, and returns its result type; [Client.Execute] runs one in raw form. Any number of
// goroutines may have commands in flight; each gets the reply to its own, matched by the message
// id. (A command that is alone in flight has none, and is executed sooner.) Waiting is bounded by
// contexts only: a caller knows how long its command may take. A call that ends early leaves the
// connection usable.
//
// A [Subscription] receives events. It holds a limited number of them, and drops and counts the
// oldest when they are not fetched: a slow consumer delays no other, and can detect what it lost.
// Therefore subscribe before sending the command that causes the event; after an event, query the
// state instead of adding up events; and bound each wait, because guests may ignore requests.
//
// A connection ends when [Client.Close] is called, when QEMU exits, or when what arrives is not
// QMP. All waiting calls then fail with the same reason, which [Client.Err] keeps. The client does
// not reconnect: wait for [Client.Done] and [Dial] again if QEMU still runs.
//
// One monitor serves one client. Give each its own -mon option; a second connection to the same
// monitor gets no greeting until the first has ended. Monitors with pretty=on are not supported: a
// message is one line.
//
// An idle client costs one goroutine that is blocked in a read, and a few kilobytes.
//
// The package imports the standard library only. Package goqemu below it adapts the client to
// go-qemu's Monitor interface, and qmptest serves a scripted fake monitor for tests.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package qmp
