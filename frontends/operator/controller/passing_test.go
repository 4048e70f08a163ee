package controller

import (
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
)

// Of many machines that stop, each would wait for the first step of all others before
// its second one, and its status would be written in between.
func TestWhatPassesGoesBeforeWhatHasNotBegun(t *testing.T) {
	now := time.Now()
	m := &engine[struct{}]{reader: &reader{now: func() time.Time { return now }}}
	for _, passing := range []bool{false, true} {
		plan := reconcile.Plan{Wake: now.Add(time.Second), Passing: passing}
		result, err := m.tellOf(t.Context(), "lab", &sight[struct{}]{object: &machine{}}, plan, &subjectMemory{})
		if err != nil {
			t.Fatal(err)
		}
		if first := result.Priority != nil && *result.Priority >= begunPriority; first != passing || result.RequeueAfter != time.Second {
			t.Errorf("passing: %v: %+v", passing, result)
		}
	}
}
