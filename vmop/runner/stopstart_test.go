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
