package qmp

import (
	"context"
	"errors"
	"fmt"
)

// Reasons for which a connection ends, and with it every call and every subscription on it. They
// are found with errors.Is in the error of a call, in Client.Err and in the error of
// Subscription.Next.
var (
	// ErrClosed means that Client.Close was called.
	ErrClosed = errors.New("monitor connection closed")

	// ErrDisconnected means that the other side closed the connection, as QEMU does when it exits.
	// The error also wraps the socket's, io.EOF for an orderly end.
	ErrDisconnected = errors.New("monitor connection lost")

	// ErrProtocol means that the other side sent something that is not QMP, so that later messages
	// cannot be attributed.
	ErrProtocol = errors.New("not the QMP protocol")

	// ErrTooLarge means that a message exceeded Options.MaxMessage.
	ErrTooLarge = errors.New("message exceeds the size limit")

	// ErrPartialWrite means that the context of a command ended when only part of it was written.
	// QEMU would take the next command for the rest, so the connection is closed.
	ErrPartialWrite = errors.New("command written only in part")
)

// Reasons for which a single call or subscription fails. The connection stays usable.
var (
	// ErrNotConnected means that the client is nil, or was not created by Dial or NewClient.
	ErrNotConnected = errors.New("there is no connection to QEMU")

	// ErrNoGreeting means that the monitor accepted the connection but sent no greeting. QEMU does
	// that while another client holds the monitor.
	ErrNoGreeting = errors.New("no greeting from the monitor, another client may hold it")

	// ErrNoOutOfBand means that out-of-band execution was requested on a connection that has not
	// negotiated it, see Options.OOB.
	ErrNoOutOfBand = errors.New("out-of-band execution is not enabled on this connection")

	// ErrNoFiles means that a file was to be passed over a connection that is not a Unix socket.
	ErrNoFiles = errors.New("this connection cannot pass files")

	// ErrSubscriptionClosed is returned by Subscription.Next after Subscription.Close.
	ErrSubscriptionClosed = errors.New("subscription closed")
)

// Error is QEMU's refusal of a command: its class, and its description, which is for display and
// changes between versions.
//
// QEMU may introduce new classes. errors.Is matches the fields that are set in the target:
// errors.Is(err, &qmp.Error{Class: "X"}) works for a class without a variable here.
type Error struct {
	Command string // name of the refused command
	Class   string // QapiErrorClass, such as "GenericError"
	Desc    string // human-readable description
}

// The error classes of QEMU's QAPI schema (qapi/error.json) that callers act on. All other refusals
// have the class "GenericError".
var (
	ErrGeneric         = &Error{Class: "GenericError"}
	ErrCommandNotFound = &Error{Class: "CommandNotFound"}
	ErrDeviceNotActive = &Error{Class: "DeviceNotActive"}
	ErrDeviceNotFound  = &Error{Class: "DeviceNotFound"}
)

// Error returns the command, QEMU's description and the class, unless it is the generic one.
func (e *Error) Error() string {
	if e.Class == "" || e.Class == "GenericError" {
		return fmt.Sprintf("qmp: %s: %s", e.Command, e.Desc)
	}
	return fmt.Sprintf("qmp: %s: %s (%s)", e.Command, e.Desc, e.Class)
}

// Is reports whether target is an *Error whose set fields all equal those of e.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok &&
		(t.Class == "" || t.Class == e.Class) &&
		(t.Command == "" || t.Command == e.Command) &&
		(t.Desc == "" || t.Desc == e.Desc)
}

func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
