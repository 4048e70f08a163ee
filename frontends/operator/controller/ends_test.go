package controller

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/vmop/sdk/vmop/reconcile"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/client-go/tools/events"
)

// Ends of machines are counted when they are told, which is when the status that
// says so is written; what else is told of a run is none.
func TestEndsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	writes, err := newWriteCounter(registry)
	if err != nil {
		t.Fatal(err)
	}
	ends, err := newEndCounter(registry)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine[machinekind.Snapshot]{
		kind: (&machines{ends: ends}).kind(), reader: &reader{now: time.Now}, events: events.NewFakeRecorder(10),
		executor: &executor{client: &refusing{}, writes: writes, now: time.Now, leads: func() bool { return true }},
	}
	plan := reconcile.Plan{Statuses: []reconcile.StatusApply{{Kind: spec.KindVirtualMachine, Name: "web"}}}
	for _, reason := range []string{"GuestPanic", "GuestPanic", "SomethingNew", "Restarted", "RequestRefused"} {
		plan.Events = append(plan.Events, reconcile.Event{Type: "Warning", Reason: reason, Action: "Run"})
	}
	if _, err := e.tellOf(t.Context(), "lab", &observed{object: &machine{}}, plan, &subjectMemory{}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "vmop_machine_ends_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	if len(got) != 2 || got["GuestPanic"] != 2 || got["Other"] != 1 {
		t.Errorf("counted: %v", got)
	}
}
