package runner

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/vmop/sdk/vmop/live"
)

// LogReporter writes a line for each message and new phase: for people, or as a JSON object.
// Messages may come from several goroutines at once. The lines of each source are limited; it
// reports how many were suppressed.
type LogReporter struct {
	// Out receives the lines; nil discards them. Errors are ignored: a machine does not stop
	// because its log is full.
	Out io.Writer
	// JSON selects JSON lines.
	JSON bool
	// Handler receives the lines instead of Out, as records with the attribute source, and for a
	// new phase the attribute phase.
	Handler slog.Handler

	last    Phase
	mu      sync.Mutex // guards the following fields, Out and Handler
	sources map[string]*logSource
	json    slog.Handler // of Out, once it was written to
}

type logLine struct {
	time    time.Time
	level   Level
	source  string
	phase   Phase
	message string
}

const logTime = "2006-01-02T15:04:05.000Z07:00"

// State implements [Reporter]: each new phase is a line.
func (l *LogReporter) State(s State) {
	if s.Phase == l.last {
		return
	}
	l.last = s.Phase
	level := LevelInfo
	if o := s.Outcome; o != nil && o.ExitCode() != ExitOK {
		level = LevelError
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.sources)) {
		l.tell(name, l.sources[name].suppressed, s.Since)
		l.sources[name].suppressed = 0
	}
	l.write(logLine{time: s.Since, level: level, source: "runner", phase: s.Phase, message: s.Name + ": " + strings.ToLower(string(s.Phase)) + ": " + s.Message})
}

// Message implements [Reporter]. An event of a new phase is omitted: the line of the phase has it.
func (l *LogReporter) Message(m Message) {
	if ev := m.Event; ev != nil && ev.Action == live.ActionStatus && ev.Reason != live.ReasonVMBooted {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sources == nil {
		l.sources = map[string]*logSource{}
	}
	source := l.sources[m.Source]
	if source == nil {
		source = &logSource{}
		l.sources[m.Source] = source
	}
	write, suppressed := source.take(m.Time)
	if !write {
		return
	}
	l.tell(m.Source, suppressed, m.Time)
	l.write(logLine{time: m.Time, level: m.Level, source: m.Source, message: m.Text})
}

func (l *LogReporter) tell(source string, suppressed int, at time.Time) {
	if suppressed > 0 {
		l.write(logLine{time: at, level: LevelWarning, source: source, message: suppressedLines(suppressed)})
	}
}

// write must be called with mu held.
func (l *LogReporter) write(line logLine) {
	line.message = printable(line.message) // JSON keeps DEL and C1
	if h := l.handler(); h != nil {
		if r := line.record(); h.Enabled(context.Background(), r.Level) {
			_ = h.Handle(context.Background(), r)
		}
		return
	}
	text := line.message
	if line.source != "runner" {
		text = line.source + ": " + text
	}
	if line.level != LevelInfo {
		text = string(line.level) + ": " + text
	}
	_, _ = fmt.Fprintf(l.out(), "%s %s\n", line.time.Format(logTime), text)
}

// handler returns nil for lines of text. It must be called with mu held.
func (l *LogReporter) handler() slog.Handler {
	if l.Handler != nil || !l.JSON {
		return l.Handler
	}
	if l.json == nil {
		l.json = slog.NewJSONHandler(l.out(), &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case slog.TimeKey:
				a.Value = slog.StringValue(a.Value.Time().Format(logTime))
			case slog.LevelKey:
				a.Value = slog.StringValue(string(levelOf(a.Value.Any().(slog.Level))))
			}
			return a
		}})
	}
	return l.json
}

func (line *logLine) record() slog.Record {
	r := slog.NewRecord(line.time, line.level.slog(), line.message, 0)
	r.AddAttrs(slog.String("source", line.source))
	if line.phase != "" {
		r.AddAttrs(slog.String("phase", string(line.phase)))
	}
	return r
}

func (l *LogReporter) out() io.Writer {
	if l.Out == nil {
		return io.Discard
	}
	return l.Out
}

// printable keeps a line on one line, and control characters from the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		// YAML forbids control characters and the noncharacters U+FFFE and U+FFFF.
		if unicode.IsControl(r) || r&0xfffe == 0xfffe {
			return ' '
		}
		return r
	}, s)
}
