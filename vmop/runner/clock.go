package runner

import "time"

// clock gives the follower the time. Its zero value is the real clock. A guest gets minutes to
// follow a request before that is given up: tests let the minutes pass faster, with real guests.
type clock struct {
	begin time.Time
	speed int // how many seconds pass in one; only with begin
}

func (c clock) now() time.Time {
	if c.begin.IsZero() {
		return time.Now()
	}
	return c.begin.Add(time.Since(c.begin) * time.Duration(c.speed))
}

// until is how long to wait for a time of this clock.
func (c clock) until(t time.Time) time.Duration {
	d := t.Sub(c.now())
	if !c.begin.IsZero() {
		d /= time.Duration(c.speed)
	}
	return max(d, 0)
}
