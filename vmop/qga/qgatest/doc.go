// Package qgatest is a guest agent for tests: it speaks the protocol of QEMU's
// guest agent over any connection, and misbehaves on demand. It reads JSON as
// the real one does: a request ends with its last brace, half a request waits for
// the rest, and the byte 0xFF makes it forget what it has and complain.
//
// # Stability
//
// It is for tests, and changes with what they test.
package qgatest
