package runner

import (
	"fmt"
	"time"
)

const (
	// logBurst is how many lines of one source are written without a limit of the rate: more than a
	// guest prints when it boots.
	logBurst = 5000
	// logRate is the number of lines per second that are added to a source's rest.
	logRate = 50
	// logRefill is a source's number of lines after a pause. Each pause is twice as long as the one
	// before, within these bounds, until the source has been calm.
	logRefill     = 500
	firstLogPause = time.Second
	lastLogPause  = time.Minute
)

// logSource limits the lines of one source: guests, QEMU and agents can write without end.
// Suppressed lines are counted.
type logSource struct {
	known      bool
	left       float64
	at         time.Time // of left
	pause      time.Duration
	closed     time.Time // until then nothing is written
	suppressed int
}

func (s *logSource) take(now time.Time) (write bool, suppressed int) {
	switch {
	case !s.known:
		s.known, s.left = true, logBurst
	case now.Before(s.closed):
		s.suppressed++
		return false, 0
	case !s.closed.IsZero():
		s.left, s.closed = logRefill, time.Time{}
	default:
		s.left = min(logBurst, s.left+logRate*max(0, now.Sub(s.at)).Seconds())
		if s.left == logBurst {
			s.pause = 0
		}
	}
	s.at = now
	if s.left < 1 {
		s.pause = min(max(2*s.pause, firstLogPause), lastLogPause)
		s.closed = now.Add(s.pause)
		s.suppressed++
		return false, 0
	}
	s.left--
	suppressed, s.suppressed = s.suppressed, 0
	return true, suppressed
}

func suppressedLines(n int) string {
	if n == 1 {
		return "1 line suppressed"
	}
	return fmt.Sprintf("%d lines suppressed", n)
}
