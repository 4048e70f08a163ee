package controller

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/vmop/sdk/vmop/reconcile"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/observation"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// machines reconciles machines.
type machines struct {
	observer *observer
	executor *executor
	starts   *starts
	events   events.EventRecorder
	ends     *prometheus.CounterVec
	memories memories
}

// Reconcile implements controller-runtime's Reconciler.
func (m *machines) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memory := m.memories.get(req.NamespacedName)
	o, err := m.observer.observe(ctx, req.NamespacedName, memory)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case o == nil:
		m.memories.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	case o.broken != nil:
		return m.tellOf(ctx, o, machinekind.Unreadable(o.stored.status(), o.stored.GetGeneration(), o.broken, m.observer.now()), memory)
	case o.behind:
		// The watches tell when it is not any more; this is for an object that
		// was gone before they could.
		return begun(recheck), nil
	}
	plan, action, waits, err := m.carryOut(ctx, o, memory)
	switch {
	case waits:
		memory.turns++
		return begun(min(turnDelay<<min(memory.turns, 10), maxTurnDelay)), nil
	case err != nil && action != nil:
		return m.failed(ctx, action, err, memory)
	case err != nil:
		return ctrl.Result{}, err
	}
	if makes(plan.Actions) {
		if memory.held.IsZero() {
			memory.held = o.Now
		}
		if o.Now.Sub(memory.held) < settle {
			return begun(recheck), nil
		}
	}
	memory.held = time.Time{}
	return m.tellOf(ctx, o, plan, memory)
}

// tellOf writes a plan's statuses, tells its events and waits for its time.
func (m *machines) tellOf(ctx context.Context, o *observed, plan reconcile.Plan, memory *machineMemory) (ctrl.Result, error) {
	switch err := m.report(ctx, o, plan, memory); {
	case err == nil:
		memory.stale = 0
	case observation.Stale(err):
		return m.again(memory), nil
	case observation.Refused(err):
		plan = m.unreported(ctx, o, plan, err, memory)
	default:
		return ctrl.Result{}, err
	}
	if plan.Wake.IsZero() {
		return ctrl.Result{}, nil
	}
	usual := 0
	return ctrl.Result{RequeueAfter: max(plan.Wake.Sub(m.observer.now()), time.Millisecond), Priority: &usual}, nil
}

// unreported notes that the API server does not take the status, and tells it.
func (m *machines) unreported(ctx context.Context, o *observed, plan reconcile.Plan, err error, memory *machineMemory) reconcile.Plan {
	t := machinekind.StatusTarget(o.stored.GetName())
	var before *reconcile.Failure
	if f, ok := memory.failures[t]; ok {
		before = &f
	}
	m.refused(ctx, t, err, memory)
	out := machinekind.Unreported(plan, before, memory.failures[t])
	for _, e := range out.Events {
		tell(m.events, o.stored, e)
		if e.Action == machinekind.ActionEnd {
			m.ends.WithLabelValues(endNamed(e.Reason)).Inc()
		}
	}
	return out
}

// begun asks for another look at a machine that was begun, before others are.
func begun(after time.Duration) ctrl.Result {
	priority := begunPriority
	return ctrl.Result{RequeueAfter: after, Priority: &priority}
}

// makes reports whether the actions bring about what the next observation will
// show at once, and nothing that the status has to say before.
func makes(actions []reconcile.Action) bool {
	for _, a := range actions {
		switch a.(type) {
		case reconcile.Create, reconcile.Apply, reconcile.UpdateClaim, reconcile.AnnotatePod, reconcile.SetFinalizers, reconcile.ResizePod:
		default:
			return false
		}
	}
	return len(actions) > 0
}

// report writes the statuses and tells the events. Those that are bound to the
// version of the machine that was observed come first: the others change it.
func (m *machines) report(ctx context.Context, o *observed, plan reconcile.Plan, memory *machineMemory) error {
	for _, bound := range []bool{true, false} {
		for _, s := range plan.Statuses {
			if (s.ResourceVersion != "") != bound {
				continue
			}
			if err := m.executor.report(ctx, o.stored, s, memory); err != nil {
				return err
			}
		}
	}
	for _, e := range plan.Events {
		tell(m.events, o.stored, e)
	}
	return nil
}

// maxNote is how long the API server lets the note of an event be.
const maxNote = 1024

func tell(to events.EventRecorder, about runtime.Object, e reconcile.Event) {
	var related runtime.Object // a nil of another type is none to the recorder
	if e.Related != nil {
		related = e.Related
	}
	to.Eventf(about, related, e.Type, e.Reason, e.Action, "%s", shortened(e.Note))
}

// shortened is a note that the API server takes. Half a character at its end
// would become another one, which is longer.
func shortened(note string) string {
	if len(note) <= maxNote {
		return note
	}
	const more = "..."
	end := maxNote - len(more)
	for end > 0 && !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + more
}

// failed tells what is done after a write that failed.
func (m *machines) failed(ctx context.Context, a reconcile.Action, err error, memory *machineMemory) (ctrl.Result, error) {
	t := a.Target()
	doubted := apierrors.IsAlreadyExists(err) && memory.stale > 0
	switch {
	case observation.Stale(err) && !doubted && !unknownResource(err):
		log.FromContext(ctx).V(1).Info("the observation was old", "action", t.String(), "reason", string(apierrors.ReasonForError(err)))
		return m.again(memory), nil
	case !observation.Refused(err) && !doubted && !unknownResource(err):
		return ctrl.Result{}, err
	}
	// The next plan explains it in the status and tries again later.
	m.refused(ctx, t, err, memory)
	return ctrl.Result{RequeueAfter: time.Millisecond}, nil
}

// refused remembers a write that the API server does not want.
func (m *machines) refused(ctx context.Context, t reconcile.Target, err error, memory *machineMemory) {
	f := reconcile.Failure{Target: t, Reason: string(apierrors.ReasonForError(err)), Message: err.Error(), Last: m.observer.now()}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		f.Message = status.Status().Message
		f.NamespaceGoes = apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	}
	log.FromContext(ctx).Info("refused", "action", t.String(), "reason", f.Reason, "message", f.Message)
	memory.failed(f)
}

// again asks for another look after a growing delay.
func (m *machines) again(memory *machineMemory) ctrl.Result {
	delay := min(50*time.Millisecond<<min(memory.stale, 10), maxRetry)
	memory.stale++
	return ctrl.Result{RequeueAfter: delay}
}
