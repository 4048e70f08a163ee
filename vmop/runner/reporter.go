package runner

import (
	"log/slog"
	"time"

	"github.com/vmop/sdk/vmop/live"
)

// Level is how much a message matters.
type Level string

// The levels of a [Message].
const (
	LevelInfo    Level = "info"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// slog is the level of a record; a level that is not known is an information.
func (l Level) slog() slog.Level {
	switch l {
	case LevelWarning:
		return slog.LevelWarn
	case LevelError:
		return slog.LevelError
	}
	return slog.LevelInfo
}

// levelOf is the level with the name of a record's.
func levelOf(l slog.Level) Level {
	switch {
	case l >= slog.LevelError:
		return LevelError
	case l >= slog.LevelWarn:
		return LevelWarning
	}
	return LevelInfo
}

// Message is something that happened.
type Message struct {
	Time  time.Time
	Level Level
	// Source is "runner", the name of the process that printed Text, or "console"
	// for what the guest printed on its serial console.
	Source string
	Text   string
	// Event is not nil if VM-Operator's runner records this with the machine, as
	// an event in the cluster.
	Event *live.Event
}

// Reporter receives what happens to a machine, in its order. The engine calls it from several
// goroutines, one call at a time, and goes on after the call: an implementation that talks to
// something slow must buffer. It may look at the engine and stop it ([Engine.State],
// [Engine.Stop]), but not change it, which is reported and would wait for the call.
type Reporter interface {
	// State reports the whole state after each change.
	State(State)
	// Message reports a single event.
	Message(Message)
}

// Reporters passes everything to several reporters in their order.
type Reporters []Reporter

// State implements [Reporter].
func (rs Reporters) State(s State) {
	for _, r := range rs {
		r.State(s)
	}
}

// Message implements [Reporter].
func (rs Reporters) Message(m Message) {
	for _, r := range rs {
		r.Message(m)
	}
}
