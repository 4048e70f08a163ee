package runner

import (
	"log/slog"
	"time"

	"github.com/vmop/sdk/vmop/live"
)

// Level is the severity of a message.
type Level string

// The levels of a [Message].
const (
	LevelInfo    Level = "info"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

func (l Level) slog() slog.Level {
	switch l {
	case LevelWarning:
		return slog.LevelWarn
	case LevelError:
		return slog.LevelError
	}
	return slog.LevelInfo
}

func levelOf(l slog.Level) Level {
	switch {
	case l >= slog.LevelError:
		return LevelError
	case l >= slog.LevelWarn:
		return LevelWarning
	}
	return LevelInfo
}

// Message is an event of a machine or a line of output.
type Message struct {
	Time  time.Time
	Level Level
	// Source is "runner", the name of the process that printed Text, or "console" for output of the
	// guest's serial console.
	Source string
	Text   string
	// Event is set if VM-Operator's runner records this with the machine, as an event in the
	// cluster.
	Event *live.Event
}

// Reporter receives a machine's states and messages, in order. The engine calls it from several
// goroutines, one call at a time, and waits for each call: a slow implementation must buffer. It
// may call [Engine.State] and [Engine.Stop], but must not change the engine otherwise: the change
// is reported, which would deadlock.
type Reporter interface {
	// State reports the whole state after each change.
	State(State)
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
