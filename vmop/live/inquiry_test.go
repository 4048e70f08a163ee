package live_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/live"
)

// However often the guest's network changes and the machine is paused: an agent
// that is there is asked once it has opened its port, an absent one never, the
// questions are bounded, and without news there is an end to them.
func TestInquiry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q live.Inquiry
		now := time.Unix(1_800_000_000, 0)
		asked := 0
		ask := func(complete bool) {
			if !q.Open {
				t.Fatalf("an absent agent is asked: %+v", q)
			}
			asked++
			q = q.Answered(now, complete)
			if !q.Due.IsZero() && !q.Due.After(now) {
				t.Fatalf("asked without a pause: %+v at %v", q, now)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				if q = q.Opened(now); q.Due != now {
					t.Fatalf("not asked: %+v", q)
				}
			},
			"close": func(*rapid.T) { q = q.Closed() },
			"resume": func(t *rapid.T) {
				if q = q.Resumed(now); q.Open && q.Due != now {
					t.Fatalf("not asked: %+v", q)
				}
			},
			"network": func(t *rapid.T) {
				if q = q.NetworkChanged(now); q.Open && (q.Due.IsZero() || q.Asked == 1 && q.Due.Sub(now) > 15*time.Second) {
					t.Fatalf("not asked: %+v at %v", q, now)
				}
			},
			"sign of life": func(t *rapid.T) {
				before := q
				if q = q.Stirred(now); q.Open && (q.Due.IsZero() || before.Due.IsZero() && q.Due.Sub(now) > 15*time.Second || !before.Due.IsZero() && q != before) {
					t.Fatalf("%+v became %+v at %v", before, q, now)
				}
			},
			"": func(t *rapid.T) {
				if !q.Open && !q.Due.IsZero() {
					t.Fatalf("an absent agent is asked: %+v", q)
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 20000).Draw(t, "ms")) * time.Millisecond)
				if !q.Due.IsZero() && !now.Before(q.Due) {
					ask(rapid.Bool().Draw(t, "complete"))
				}
			},
		})
		// Peace: nothing happens any more, and nothing is learned.
		asked = 0
		for !q.Due.IsZero() {
			now = q.Due
			ask(false)
			if asked > 8 {
				t.Fatal("asked for ever")
			}
		}
	})
}

// A guest that changes its network all the time is not asked all the time.
func TestInquiryIsCalm(t *testing.T) {
	for name, tell := range map[string]func(live.Inquiry, time.Time) live.Inquiry{
		"network": live.Inquiry.NetworkChanged, "clock": live.Inquiry.Stirred,
	} {
		q := live.Inquiry{}.Opened(time.Unix(0, 0)).Answered(time.Unix(0, 0), true)
		if !q.Due.IsZero() {
			t.Fatalf("%+v", q)
		}
		asked := 0
		for s := range 3600 {
			now := time.Unix(int64(s), 0)
			if q = tell(q, now); !now.Before(q.Due) {
				asked++
				q = q.Answered(now, true)
			}
		}
		if asked > 3600/6 {
			t.Errorf("%s: asked %d times in an hour", name, asked)
		}
	}
}

// A sign of life of a guest that has its addresses is one question, or some if it
// has just lost them.
func TestInquiryAfterSignOfLife(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	calm := live.Inquiry{}.Opened(now).Answered(now, true)
	now = now.Add(time.Hour)
	for complete, want := range map[bool]int{true: 1, false: 8} {
		q, asked := calm.Stirred(now), 0
		if q.Due != now {
			t.Errorf("asked at %v, not at once", q.Due)
		}
		for ; !q.Due.IsZero(); asked++ {
			q = q.Answered(q.Due, complete)
		}
		if asked != want {
			t.Errorf("complete %v: asked %d times, want %d", complete, asked, want)
		}
	}
}
