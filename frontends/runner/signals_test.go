package main

import (
	"testing"
	"time"
)

func TestSignalsThatCount(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		what            string
		ago             time.Duration // 0 is never
		container, want bool
	}{
		{"the first", 0, false, true}, {"the first in a container", 0, true, true},
		{"the same again", time.Millisecond, false, false}, {"a second one", time.Second, false, true},
		{"a second one in a container", time.Hour, true, false},
	} {
		last := time.Time{}
		if c.ago > 0 {
			last = now.Add(-c.ago)
		}
		if got := counts(last, now, c.container); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
