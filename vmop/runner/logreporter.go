package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/vmop/sdk/vmop/live"
)

// LogReporter writes a line for each happening: for people, or one JSON object
// each. Messages may come from several goroutines at once. Of a source that writes
// without end it has a part, and says how many lines were suppressed.
type LogReporter struct {
	// Out receives the lines. Errors are ignored: a machine does not stop
	// because its log is full. Nil is nobody who reads them.
	Out io.Writer
	// JSON selects JSON lines.
	JSON bool

	last    Phase
	mu      sync.Mutex            // for Out and sources
	sources map[string]*logSource // by their names
}

// logLine is a line of a JSON log.
type logLine struct {
	Time    string `json:"time"`
	Level   Level  `json:"level"`
	Source  string `json:"source"`
	Phase   Phase  `json:"phase,omitempty"`
	Message string `json:"msg"`
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
	l.write(logLine{Time: s.Since.Format(logTime), Level: level, Source: "runner", Phase: s.Phase, Message: s.Name + ": " + strings.ToLower(string(s.Phase)) + ": " + s.Message})
}

// Message implements [Reporter]. An event that a phase comes with is in the line
// of the phase.
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
	l.write(logLine{Time: m.Time.Format(logTime), Level: m.Level, Source: m.Source, Message: m.Text})
}

// tell logs how many lines of a source were suppressed, if any.
func (l *LogReporter) tell(source string, suppressed int, at time.Time) {
	if suppressed > 0 {
		l.write(logLine{Time: at.Format(logTime), Level: LevelWarning, Source: source, Message: suppressedLines(suppressed)})
	}
}

// write needs mu.
func (l *LogReporter) write(line logLine) {
	if l.JSON {
		line.Message = printable(line.Message) // JSON leaves DEL and C1 as they are
		if b, err := json.Marshal(line); err == nil {
			_, _ = l.out().Write(append(b, '\n'))
		}
		return
	}
	text := printable(line.Message)
	if line.Source != "runner" {
		text = line.Source + ": " + text
	}
	if line.Level != LevelInfo {
		text = string(line.Level) + ": " + text
	}
	_, _ = fmt.Fprintf(l.out(), "%s %s\n", line.Time, text)
}

func (l *LogReporter) out() io.Writer {
	if l.Out == nil {
		return io.Discard
	}
	return l.Out
}

// printable keeps a line a line, and a terminal safe from what a child prints.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		// Not characters, and U+FFFE and U+FFFF, which are none: YAML forbids both.
		if unicode.IsControl(r) || r&0xfffe == 0xfffe {
			return ' '
		}
		return r
	}, s)
}
