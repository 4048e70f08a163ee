package live

import (
	"time"
)

const (
	maxTries = 5
	// firstPause is the time that the first attempt gets to show an effect; it doubles with each.
	// Together they are two and a half minutes, in which a guest can boot.
	firstPause = 5 * time.Second
)

func pause(count int) time.Duration { return firstPause << (count - 1) }

type verdict int

const (
	tryNow verdict = iota
	tryLater
	tryNoMore
)

func (d *decider) try(step Step, goal string) verdict {
	part := step.part()
	t := d.out.Memory.Tries[part]
	if t.Goal != goal {
		t = Try{Goal: goal}
	}
	if t.Count > 0 {
		if next := t.Last.Add(pause(t.Count)); d.in.Now.Before(next) {
			d.wake(next)
			return tryLater
		}
	}
	if t.Count >= maxTries {
		return tryNoMore
	}
	t.Count++
	t.Last = d.in.Now
	d.out.Memory.Tries[part] = t
	d.wake(d.in.Now.Add(pause(t.Count)))
	return tryNow
}

func (d *decider) givenUp(step Step, goal string) bool {
	t := d.in.Memory.Tries[step.part()]
	return t.Goal == goal && t.Count >= maxTries && !d.in.Now.Before(t.Last.Add(pause(t.Count)))
}

// attempt adds steps that lead to a goal, if it is time for them, and returns the last problem.
func (d *decider) attempt(goal string, steps ...Step) (exhausted bool, problem string) {
	switch d.try(steps[0], goal) {
	case tryNow:
		d.out.Steps = append(d.out.Steps, steps...)
	case tryNoMore:
		exhausted = true
	}
	return exhausted, d.out.Memory.Tries[steps[0].part()].Error
}

func (d *decider) wake(at time.Time) {
	if d.out.Wake.IsZero() || at.Before(d.out.Wake) {
		d.out.Wake = at
	}
}
