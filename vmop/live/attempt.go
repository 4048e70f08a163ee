package live

import (
	"time"
)

const (
	// maxTries bounds the attempts to reach one goal.
	maxTries = 5
	// firstPause is what an attempt gets to show an effect, the first time; it
	// doubles with each. Together they are two and a half minutes: a guest that
	// boots meanwhile is reached by the later ones.
	firstPause = 5 * time.Second
)

func pause(count int) time.Duration { return firstPause << (count - 1) }

// verdict is whether to attempt something.
type verdict int

const (
	tryNow verdict = iota
	// tryLater means that the last attempt may still have its effect.
	tryLater
	// tryNoMore means that nothing is left to try for this goal.
	tryNoMore
)

// try decides about an attempt of the part that step belongs to, and records it.
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

// givenUp reports whether nothing is left to try for a goal of the part that step
// belongs to.
func (d *decider) givenUp(step Step, goal string) bool {
	t := d.in.Memory.Tries[step.part()]
	return t.Goal == goal && t.Count >= maxTries && !d.in.Now.Before(t.Last.Add(pause(t.Count)))
}

// attempt adds steps that lead to a goal, if it is time for them, and returns
// what to say about it meanwhile.
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
