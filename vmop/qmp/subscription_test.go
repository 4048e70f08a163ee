package qmp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

func TestEventsCarryNameDataAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, end := connect(t, qmptest.Options{}, qmp.Options{})
		defer end()
		all := c.Subscribe(4)
		some := c.Subscribe(4, "SHUTDOWN", "RESET")
		s.Emit("STOP", nil)
		s.Emit("SHUTDOWN", map[string]any{"guest": true, "reason": "guest-shutdown"})
		if e, err := all.Next(t.Context()); err != nil || e.Name != "STOP" || e.Data != nil || !e.Timestamp.Equal(time.Now()) {
			t.Errorf("got %+v and %v", e, err)
		}
		for _, sub := range []*qmp.Subscription{all, some} {
			e, err := sub.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := qmp.DecodeEvent[qmp.ShutdownEvent](e)
			if want := (qmp.ShutdownEvent{Guest: true, Reason: qmp.CauseGuestShutdown}); err != nil || got != want {
				t.Errorf("got %+v and %v", got, err)
			}
			if _, err := qmp.DecodeEvent[qmp.ResetEvent](e); err == nil {
				t.Error("another event was decoded")
			}
			clear(e.Data) // is its own copy
		}
		ctx, cancel := within(time.Second)
		defer cancel()
		_, err := some.Next(ctx)
		wantError(t, err, context.DeadlineExceeded)
		if some.Err() != nil {
			t.Error(some.Err())
		}
	})
}

func TestUnknownTimeIsZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, end := connect(t, qmptest.Options{}, qmp.Options{})
		defer end()
		sub := c.Subscribe(1)
		_, _ = s.Write([]byte(`{"event":"STOP","timestamp":{"seconds":-1,"microseconds":-1}}` + "\n"))
		if e, err := sub.Next(t.Context()); err != nil || !e.Timestamp.IsZero() {
			t.Errorf("got %+v and %v", e, err)
		}
	})
}

func TestSubscriptionEndsAfterWhatItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, end := connect(t, qmptest.Options{}, qmp.Options{})
		defer end()
		lost, closed := c.Subscribe(4), c.Subscribe(4)
		s.Emit("STOP", nil)
		s.Emit("RESUME", nil)
		synctest.Wait()
		closed.Close()
		closed.Close()
		s.Hangup()
		<-c.Done()
		for sub, want := range map[*qmp.Subscription]error{lost: qmp.ErrDisconnected, closed: qmp.ErrSubscriptionClosed} {
			var names []string
			for e := range sub.All(t.Context()) {
				names = append(names, e.Name)
			}
			if len(names) != 2 || names[0] != "STOP" || names[1] != "RESUME" {
				t.Errorf("got %q", names)
			}
			wantError(t, sub.Err(), want)
			_, err := sub.Next(t.Context())
			wantError(t, err, want)
		}
	})
}

func TestCloseWakesTheConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, end := connect(t, qmptest.Options{}, qmp.Options{})
		defer end()
		sub := c.Subscribe(0)
		time.AfterFunc(time.Hour, sub.Close)
		for e := range sub.All(context.Background()) {
			t.Errorf("got %+v", e)
		}
		wantError(t, sub.Err(), qmp.ErrSubscriptionClosed)
	})
}

func TestSeveralConsumersShareASubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, end := connect(t, qmptest.Options{}, qmp.Options{})
		defer end()
		const consumers = 50
		sub := c.Subscribe(consumers)
		got := make(chan string, consumers)
		for range consumers {
			go func() {
				e, err := sub.Next(context.Background())
				if err != nil {
					t.Error(err)
				}
				got <- e.Name
			}()
		}
		synctest.Wait()
		_, _ = s.Write([]byte(strings.Repeat(`{"event":"A"}`+"\n", consumers)))
		for range consumers {
			<-got
		}
	})
}

// An event storm that nobody reads delays no command and costs the oldest
// events, which the next event tells.
func TestStormDelaysNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const storm, held = 5000, 3
		c, _, end := connect(t, qmptest.Options{Handlers: map[string]qmptest.Handler{
			"query-status": func(c *qmptest.Call) {
				for i := range storm {
					c.Server.Emit("STORM", map[string]int{"n": i})
				}
				c.Return(status)
			},
		}}, qmp.Options{})
		defer end()
		sub := c.Subscribe(held)
		if st, err := qmp.Do(t.Context(), c, qmp.QueryStatus{}); err != nil || !st.Running {
			t.Errorf("got %+v and %v", st, err)
		}
		if sub.Dropped() != storm-held {
			t.Errorf("dropped %d", sub.Dropped())
		}
		for i := range held {
			e, err := sub.Next(t.Context())
			missed := uint64(0)
			if i == 0 {
				missed = storm - held
			}
			if err != nil || e.Missed != missed {
				t.Errorf("event %d: %+v and %v", i, e, err)
			}
		}
	})
}
