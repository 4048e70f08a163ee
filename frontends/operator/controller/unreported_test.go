package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusing is an API server that takes no status while there is an error.
type refusing struct {
	client.Client
	err error
}

func (r *refusing) Status() client.SubResourceWriter { return refusingStatus{api: r} }

type refusingStatus struct {
	client.SubResourceWriter
	api *refusing
}

func (s refusingStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return s.api.err
}

// A status that is refused is told once, and tried again after pauses that grow
// until it is taken.
func TestARefusedStatusIsToldOnce(t *testing.T) {
	writes, err := newWriteCounter(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	invalid := apierrors.NewInvalid(spec.GroupVersion().WithKind(spec.KindVirtualMachine).GroupKind(), "web",
		field.ErrorList{field.Required(field.NewPath("spec"), "")})
	api := &refusing{err: invalid}
	recorder := events.NewFakeRecorder(10)
	m := &engine[struct{}]{
		reader:   &reader{now: time.Now},
		executor: &executor{client: api, writes: writes, now: time.Now, leads: func() bool { return true }},
		events:   recorder,
	}
	o := &sight[struct{}]{object: &machine{}}
	plan := reconcile.Plan{Statuses: []reconcile.StatusApply{{Kind: spec.KindVirtualMachine, Name: "web", Status: map[string]any{"phase": "Stopped"}}}}
	memory := &subjectMemory{}
	var last time.Duration
	for range 3 {
		result, err := m.tellOf(t.Context(), "lab", o, plan, memory)
		if err != nil || result.RequeueAfter <= last {
			t.Errorf("%v, %v after %v", err, result, last)
		}
		last = result.RequeueAfter
	}
	if n := len(recorder.Events); n != 1 {
		t.Fatalf("%d events", n)
	}
	if e := <-recorder.Events; !strings.Contains(e, "spec: Required value") {
		t.Errorf("%s", e)
	}
	api.err = nil
	if result, err := m.tellOf(t.Context(), "lab", o, plan, memory); err != nil || result.RequeueAfter != 0 || len(memory.failures) != 0 {
		t.Errorf("%v, %v, %v", err, result, memory.failures)
	}
}
