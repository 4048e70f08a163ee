package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A start that somebody stops does not wait for a QEMU that has no reason to end.
func TestStopOfAStartWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{qemu: &child{name: "qemu", done: make(chan struct{})}}
		stop, cancel := context.WithCancel(t.Context())
		ctx, end := context.WithCancelCause(stop)
		defer end(nil)
		cancel()
		begin := time.Now()
		if err := m.explain(ctx, errors.New("the monitor is gone")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A guest that was let go has begun to execute: a stop at that moment shuts it down, and does not
// kill it as one that never ran.
func TestStopOfAStartThatHasLetTheGuestGo(t *testing.T) {
	for _, before := range []bool{true, false} {
		e, _, client, q := connectFake(t, fakeConfig())
		f, err := e.newFollower(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		q.mu.Lock()
		q.waits, q.onCont = true, stop
		q.mu.Unlock()
		if before {
			stop()
		}
		if err := f.begin(ctx); (err == nil) == before {
			t.Errorf("stopped before: %v: %v", before, err)
		}
	}
}
