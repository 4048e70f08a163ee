package qga

import (
	"errors"
	"fmt"
)

// Errors that callers act on. They are wrapped; use errors.Is.
var (
	// ErrNoAnswer means that the context ended before the agent answered: there is no agent, or it
	// is busy. The context's error is wrapped too.
	ErrNoAnswer = errors.New("the guest agent does not answer")
	// ErrDisconnected means that the connection has ended. A new one is needed.
	ErrDisconnected = errors.New("connection to the guest agent lost")
	// ErrClosed means that Close was called.
	ErrClosed = errors.New("guest agent client closed")
	// ErrProtocol means that the agent sent something that is no valid reply.
	ErrProtocol = errors.New("guest agent: unexpected reply")
	// ErrTooLarge means that a reply was longer than MaxReply or MaxAnswer.
	ErrTooLarge = errors.New("guest agent: reply too large")
	// ErrCommandNotFound matches an *Error of the class ClassCommandNotFound.
	ErrCommandNotFound = errors.New("guest agent: command not found")
)

// Classes of errors that agents report. Newer agents may have others.
const (
	ClassGeneric         = "GenericError"
	ClassCommandNotFound = "CommandNotFound"
)

// Error is the agent's refusal of a command, or the failure of one.
type Error struct {
	Command string `json:"-"`     // the command, such as "guest-fsfreeze-freeze"
	Class   string `json:"class"` // such as ClassGeneric
	Desc    string `json:"desc"`  // for display, as the guest wrote it
}

func (e *Error) Error() string {
	// Quoted: the guest chooses this text, and it ends up in logs and terminals.
	return fmt.Sprintf("qga: %s: %+q", e.Command, e.Desc)
}

// Is matches ErrCommandNotFound by the class.
func (e *Error) Is(target error) bool {
	return target == ErrCommandNotFound && e.Class == ClassCommandNotFound
}
