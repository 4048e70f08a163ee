package runner

import "time"

// clock is the follower's clock. Its zero value is the real one. Tests speed it up, since a real
// guest gets minutes to follow a request.
type clock struct {
	begin time.Time
	speed int // seconds per real second; only with begin
}

func (c clock) now() time.Time {
	if c.begin.IsZero() {
		return time.Now()
	}
	return c.begin.Add(time.Since(c.begin) * time.Duration(c.speed))
}

func (c clock) until(t time.Time) time.Duration {
	d := t.Sub(c.now())
	if !c.begin.IsZero() {
		d /= time.Duration(c.speed)
	}
	return max(d, 0)
}
