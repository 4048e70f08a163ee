package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// records is a handler that keeps what it gets from a level on.
type records struct {
	slog.Handler
	from slog.Level
	got  []slog.Record
}

func (r *records) Enabled(_ context.Context, l slog.Level) bool { return l >= r.from }

func (r *records) Handle(_ context.Context, record slog.Record) error {
	r.got = append(r.got, record)
	return nil
}

func attributes(r slog.Record) map[string]string {
	out := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		out[a.Key] = a.Value.String()
		return true
	})
	return out
}

// Text, JSON and records are the same log.
func TestLogsSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), 123456789).UTC()
		stamp := at.Format("2006-01-02T15:04:05.000Z07:00")
		m := Message{
			Time: at, Text: rapid.String().Draw(t, "text"),
			Level:  rapid.SampledFrom([]Level{LevelInfo, LevelWarning, LevelError}).Draw(t, "level"),
			Source: rapid.SampledFrom([]string{"runner", "qemu", "console"}).Draw(t, "source"),
		}
		var text, lines bytes.Buffer
		kept := &records{from: rapid.SampledFrom([]slog.Level{slog.LevelDebug, slog.LevelError}).Draw(t, "from")}
		for _, l := range []*LogReporter{{Out: &text}, {Out: &lines, JSON: true}, {Out: &text, JSON: true, Handler: kept}} {
			l.Message(m)
			l.State(State{Name: "web", Phase: PhaseBooting, Since: at, Message: "it runs"})
		}

		said := printable(m.Text)
		before := map[Level]string{LevelWarning: "warning: ", LevelError: "error: "}[m.Level]
		if m.Source != "runner" {
			before += m.Source + ": "
		}
		if want := fmt.Sprintf("%s %s%s\n%s web: booting: it runs\n", stamp, before, said, stamp); text.String() != want {
			t.Errorf("text: %q, want %q", text.String(), want)
		}

		type line struct{ Time, Level, Source, Phase, Msg string }
		var got []line
		for dec := json.NewDecoder(&lines); dec.More(); {
			var l line
			if err := dec.Decode(&l); err != nil {
				t.Fatal(err)
			}
			got = append(got, l)
		}
		want := []line{{stamp, string(m.Level), m.Source, "", said}, {stamp, "info", "runner", string(PhaseBooting), "web: booting: it runs"}}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("JSON: %q, want %q", got, want)
		}

		levels := map[Level]slog.Level{LevelInfo: slog.LevelInfo, LevelWarning: slog.LevelWarn, LevelError: slog.LevelError}
		records := kept.got
		for _, w := range want {
			level := levels[Level(w.Level)]
			if level < kept.from {
				continue
			}
			if len(records) == 0 {
				t.Fatalf("no record of %q", w)
			}
			r, attrs := records[0], attributes(records[0])
			if records = records[1:]; !r.Time.Equal(at) || r.Level != level || r.Message != w.Msg || attrs["source"] != w.Source || attrs["phase"] != w.Phase {
				t.Errorf("record %v %v, want %q", r, attrs, w)
			}
		}
		if len(records) > 0 {
			t.Errorf("more records: %v", records)
		}
	})
}
