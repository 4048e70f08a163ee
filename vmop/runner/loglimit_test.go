package runner

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// However fast a source writes: each line is written or counted, little is written
// beyond the burst, and other sources are not concerned.
func TestFloodOfLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		log := &LogReporter{Out: &out}
		now := time.Unix(1e9, 0)
		sent := rapid.IntRange(0, 600).Draw(t, "lines")
		step := time.Duration(rapid.IntRange(0, 100).Draw(t, "ms")) * time.Millisecond
		for range sent {
			now = now.Add(step)
			log.Message(Message{Time: now, Level: LevelInfo, Source: "console", Text: "flood"})
		}
		// As fast as it can.
		for range 6000 {
			sent++
			log.Message(Message{Time: now, Level: LevelInfo, Source: "console", Text: "flood"})
		}
		log.Message(Message{Time: now, Level: LevelInfo, Source: "runner", Text: "important"})
		log.State(State{Phase: PhaseStopped, Since: now})
		written := strings.Count(out.String(), "console: flood")
		counted := 0
		for _, m := range regexp.MustCompile(`(\d+) lines? suppressed`).FindAllStringSubmatch(out.String(), -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			counted += n
		}
		if written+counted != sent || counted < 6000-logBurst {
			t.Fatalf("%d lines: %d written and %d suppressed", sent, written, counted)
		}
		if !strings.Contains(out.String(), "important") {
			t.Fatal("another source was suppressed")
		}
	})
}

// A flood that goes on is in the log for less and less of the time; after calm it
// begins anew.
func TestPausesOfALogGrow(t *testing.T) {
	var s logSource
	now := time.Unix(1e9, 0)
	minute := func() (written int) {
		for range 60 * 1000 {
			now = now.Add(time.Millisecond)
			if ok, _ := s.take(now); ok {
				written++
			}
		}
		return written
	}
	got := fmt.Sprint(minute() > logBurst, minute() < 3*logRefill, minute() < 3*logRefill, minute() < 3*logRefill)
	if got != "true true true true" {
		t.Error(got)
	}
	now = now.Add(time.Hour)
	if ok, n := s.take(now); !ok || n == 0 {
		t.Errorf("after an hour: %v, %d", ok, n)
	}
	now = now.Add(time.Hour)
	s.take(now)
	if s.pause != 0 || s.left < logBurst-1 {
		t.Errorf("after calm: %+v", s)
	}
}

// A guest that changes its state all the time has the storage waited for once a second,
// and a new phase always is.
func TestStatesThatWaitForTheStorage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &StateFile{}
		now, phase := time.Unix(1e9, 0), PhaseBooting
		begun, durable, phases := now, 0, 1
		for range rapid.IntRange(1, 2000).Draw(t, "states") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "ms")) * time.Millisecond)
			changed := rapid.IntRange(0, 99).Draw(t, "phase") == 0
			if changed {
				phases++
				phase = map[Phase]Phase{PhaseBooting: PhaseTerminating, PhaseTerminating: PhaseBooting}[phase]
			}
			is := f.durable(phase, now)
			if changed && !is {
				t.Fatal("a new phase is not durable")
			}
			if is {
				durable++
			}
		}
		if most := phases + 1 + int(now.Sub(begun)/statePause); durable > most {
			t.Fatalf("%d times in %v, with %d phases", durable, now.Sub(begun), phases)
		}
	})
}
