package controller

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Each panic that a status tells of is counted once, by the operator that leads.
func TestPanicsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	total, err := newPanicCounter(registry)
	if err != nil {
		t.Fatal(err)
	}
	counted := func() float64 {
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "vmop_guest_panics_total" {
			t.Fatal(families, err)
		}
		return families[0].GetMetric()[0].GetCounter().GetValue()
	}
	leads := false
	told := panicsTold(total, func() bool { return leads })
	var last *machine
	for i, step := range []struct {
		what, uid string
		panics    int
		standby   bool
		want      float64
	}{
		{"what is found is another's", "a", 5, false, 0},
		{"one more", "a", 6, false, 1},
		{"nothing new", "a", 6, false, 1},
		{"two at a time", "a", 8, false, 3},
		{"those of the run that has ended stay until the next", "a", 8, false, 3},
		{"started again", "a", 0, false, 3},
		{"its first", "a", 1, false, 4},
		{"two more", "a", 3, false, 6},
		{"started again, and seen late", "a", 2, false, 8},
		{"another operator counts", "a", 4, true, 8},
		{"this one goes on", "a", 5, false, 9},
		{"another machine of the name", "b", 6, false, 15},
	} {
		now := &machine{}
		text := fmt.Sprintf(`{"metadata": {"name": "web", "uid": %q}, "status": {"guestPanics": %d}}`, step.uid, step.panics)
		if step.panics == 0 {
			text = fmt.Sprintf(`{"metadata": {"name": "web", "uid": %q}, "status": {}}`, step.uid)
		}
		if err := json.Unmarshal([]byte(text), now); err != nil {
			t.Fatal(err)
		}
		leads = !step.standby
		if i == 0 {
			told.Create(t.Context(), event.CreateEvent{Object: now}, nil)
		} else {
			told.Update(t.Context(), event.UpdateEvent{ObjectOld: last, ObjectNew: now}, nil)
		}
		if got := counted(); got != step.want {
			t.Fatalf("%s: %v, want %v", step.what, got, step.want)
		}
		last = now
	}
}
