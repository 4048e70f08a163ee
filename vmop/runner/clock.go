package runner

import "time"

// clock tells the follower the time. Its zero value is the real one. A guest gets
// minutes to follow a wish before it is given up: tests let them pass faster, and
// see from a real guest how that ends.
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
