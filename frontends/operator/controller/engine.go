package controller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/observation"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// engine reconciles one kind: it observes the subject of a request, lets the kind decide, executes
// the plan and reports the result. S is a snapshot of the kind.
type engine[S any] struct {
	kind[S]
	*reader
	executor *executor
	events   events.EventRecorder
	memories memories
}

// kind is what an engine needs of a kind. All but observe and decide may be nil.
type kind[S any] struct {
	// namespace has the objects of cluster-scoped subjects.
	namespace string
	// observe returns nil if there is nothing to decide: the subject does not exist, or the look
	// says why.
	observe func(w *look) *sight[S]
	// decide must be total, deterministic and without side effects.
	decide func(S) reconcile.Plan
	// prepare is called with a plan before it is executed. It may read what no cache shows and
	// decide again. It never returns nil.
	prepare func(ctx context.Context, o *sight[S], plan reconcile.Plan, memory *subjectMemory) (*prepared, error)
	done    func(ctx context.Context, a reconcile.Action)
	told    func(ctx context.Context, o *sight[S], events []reconcile.Event)
}

type sight[S any] struct {
	snapshot S
	now      time.Time
	// object is the object of events that name no other.
	object client.Object
	// instead is the plan for a subject that cannot be decoded, which has no snapshot.
	instead *reconcile.Plan
}

// prepared is a plan that is ready to be executed.
type prepared struct {
	plan reconcile.Plan
	// waits: it is not this subject's turn. Nothing is done, and it is requeued.
	waits bool
	// until is the deadline of the actions; zero: each has its own timeout.
	until time.Time
	// answered is called with each action, the object that the API server returned, and the error.
	// end is called last, even if nothing was done; executed: all actions were. Both may be nil.
	answered func(a reconcile.Action, answer client.Object, err error)
	end      func(executed bool)
}

// Reconcile implements controller-runtime's Reconciler.
func (e *engine[S]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memory := e.memories.get(req.NamespacedName)
	memory.looked = e.now()
	namespace := cmp.Or(req.Namespace, e.namespace)
	w := &look{reader: e.reader, ctx: ctx, namespace: namespace, name: req.Name, memory: memory}
	o := e.observe(w)
	switch {
	case w.err != nil:
		return ctrl.Result{}, w.err
	case w.behind:
		// The watches wake the subject; this covers an object that was deleted before they could.
		return begun(recheck), nil
	case o == nil:
		e.memories.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	defer e.memories.looked(req.NamespacedName, memory)
	if o.instead != nil {
		return e.tellOf(ctx, namespace, o, *o.instead, memory)
	}
	p, failed, err := e.carryOut(ctx, namespace, o, memory)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case len(failed) > 0:
		return e.failed(ctx, failed, memory)
	case p.waits:
		memory.turns++
		return begun(min(turnDelay<<min(memory.turns, 10), maxTurnDelay)), nil
	}
	if createsObjects(p.plan.Actions) || p.plan.Passing && len(p.plan.Statuses) > 0 {
		if memory.held.IsZero() {
			memory.held = o.now
		}
		if o.now.Sub(memory.held) < settle {
			return begun(recheck), nil
		}
	}
	memory.held = time.Time{}
	return e.tellOf(ctx, namespace, o, p.plan, memory)
}

// carryOut returns the plan that it executed up to the batch of the failed actions.
func (e *engine[S]) carryOut(ctx context.Context, namespace string, o *sight[S], memory *subjectMemory) (p *prepared, failed []executed, err error) {
	p = &prepared{plan: e.decide(o.snapshot)}
	if e.prepare != nil {
		p, err = e.prepare(ctx, o, p.plan, memory)
		if p.end != nil {
			defer func() { p.end(err == nil && len(failed) == 0 && !p.waits) }()
		}
		if err != nil || p.waits {
			return p, nil, err
		}
	}
	if !p.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, p.until)
		defer cancel()
	}
	for _, batch := range reconcile.Batches(p.plan.Actions) {
		for _, x := range e.executor.execute(ctx, namespace, batch, memory) {
			if p.answered != nil {
				p.answered(x.action, x.answer, x.err)
			}
			if x.err != nil {
				failed = append(failed, x)
				continue
			}
			log.FromContext(ctx).V(1).Info("done", "action", x.action.Target().String())
			if e.done != nil {
				e.done(ctx, x.action)
			}
		}
		if len(failed) > 0 {
			return p, failed, nil
		}
	}
	return p, nil, nil
}

// tellOf writes a plan's statuses, emits its events and schedules its next look.
func (e *engine[S]) tellOf(ctx context.Context, namespace string, o *sight[S], plan reconcile.Plan, memory *subjectMemory) (ctrl.Result, error) {
	switch t, err := e.report(ctx, namespace, o, plan, memory); {
	case err == nil:
		memory.stale = 0
	case observation.Stale(err):
		return retryLater(memory), nil
	case observation.Refused(err):
		plan = e.unreported(ctx, namespace, o, plan, t, err, memory)
	default:
		return ctrl.Result{}, err
	}
	if plan.Wake.IsZero() {
		return ctrl.Result{}, nil
	}
	after := max(plan.Wake.Sub(e.now()), time.Millisecond)
	if plan.Passing {
		return begun(after), nil
	}
	return ctrl.Result{RequeueAfter: after, Priority: new(0)}, nil
}

func (e *engine[S]) unreported(ctx context.Context, namespace string, o *sight[S], plan reconcile.Plan, t reconcile.Target, err error, memory *subjectMemory) reconcile.Plan {
	var before *reconcile.Failure
	if f, ok := memory.failures[t]; ok {
		before = &f.Failure
	}
	e.refused(ctx, t, err, memory)
	out := reconcile.Unreported(plan, before, memory.failures[t].Failure)
	if i := slices.IndexFunc(plan.Statuses, func(s reconcile.StatusApply) bool { return s.Target() == t }); i >= 0 && o.object == nil {
		// The subject itself cannot be the object of events.
		s := &plan.Statuses[i]
		for j := range out.Events {
			if out.Events[j].About == nil {
				out.Events[j].About = &corev1.ObjectReference{APIVersion: spec.GroupVersion().String(), Kind: s.Kind, Namespace: namespace, Name: s.Name, UID: s.UID}
			}
		}
	}
	e.tell(ctx, o, out.Events)
	return out
}

// begun requeues a subject whose creation, start or stop has begun, ahead of others.
func begun(after time.Duration) ctrl.Result {
	return ctrl.Result{RequeueAfter: after, Priority: new(begunPriority)}
}

// createsObjects reports whether the actions create only what the next observation will show at
// once, with nothing that the status has to report before.
func createsObjects(actions []reconcile.Action) bool {
	for _, a := range actions {
		switch a.(type) {
		case reconcile.Create, reconcile.Apply, reconcile.UpdateClaim, reconcile.AnnotatePod, reconcile.SetFinalizers, reconcile.ResizePod:
		default:
			return false
		}
	}
	return len(actions) > 0
}

// report writes the statuses and emits the events. Statuses bound to the observed version of the
// object come first, because the others change that version. If a status is refused, its target is
// returned.
func (e *engine[S]) report(ctx context.Context, namespace string, o *sight[S], plan reconcile.Plan, memory *subjectMemory) (reconcile.Target, error) {
	for _, bound := range []bool{true, false} {
		for _, s := range plan.Statuses {
			if (s.ResourceVersion != "") != bound {
				continue
			}
			if err := e.executor.report(ctx, namespace, s, memory); err != nil {
				return s.Target(), err
			}
		}
	}
	e.tell(ctx, o, plan.Events)
	return reconcile.Target{}, nil
}

// maxNote is the API server's limit for the note of an event.
const maxNote = 1024

func (e *engine[S]) tell(ctx context.Context, o *sight[S], events []reconcile.Event) {
	for i := range events {
		event := &events[i]
		var about, related runtime.Object = o.object, nil // the recorder does not recognize a typed nil
		if event.About != nil {
			about = event.About
		}
		if event.Related != nil {
			related = event.Related
		}
		e.events.Eventf(about, related, event.Type, event.Reason, event.Action, "%s", shortened(event.Note))
	}
	if e.told != nil {
		e.told(ctx, o, events)
	}
}

// shortened cuts a note to what the API server accepts. Half a character at the end would be
// replaced by a longer one.
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

func (e *engine[S]) failed(ctx context.Context, failed []executed, memory *subjectMemory) (ctrl.Result, error) {
	var unclear error
	stale := false
	for _, x := range failed {
		t := x.action.Target()
		doubted := apierrors.IsAlreadyExists(x.err) && memory.stale > 0
		switch {
		case observation.Stale(x.err) && !doubted && !unknownResource(x.err):
			log.FromContext(ctx).V(1).Info("the observation was old", "action", t.String(), "reason", string(apierrors.ReasonForError(x.err)))
			stale = true
		case !observation.Refused(x.err) && !doubted && !unknownResource(x.err):
			if unclear == nil {
				unclear = x.err
			}
		default:
			// The next plan explains it in the status and tries again later.
			e.refused(ctx, t, x.err, memory)
		}
	}
	switch {
	case unclear != nil:
		return ctrl.Result{}, unclear
	case stale:
		return retryLater(memory), nil
	}
	return ctrl.Result{RequeueAfter: time.Millisecond}, nil
}

func (e *engine[S]) refused(ctx context.Context, t reconcile.Target, err error, memory *subjectMemory) {
	f := reconcile.Failure{Target: t, Reason: string(apierrors.ReasonForError(err)), Message: err.Error(), Last: e.now()}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		f.Message = status.Status().Message
		f.NamespaceGoes = apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
		f.Infeasible = apierrors.HasStatusCause(err, nodeCapacityCause)
	}
	log.FromContext(ctx).Info("refused", "action", t.String(), "reason", f.Reason, "message", f.Message)
	memory.failed(f)
}

// nodeCapacityCause is that of a resize for which the pod's node is too small
// (k8s.io/kubernetes/plugin/pkg/admission/podresize, since 1.36).
const nodeCapacityCause metav1.CauseType = "NodeCapacity"

func retryLater(memory *subjectMemory) ctrl.Result {
	delay := min(50*time.Millisecond<<min(memory.stale, 10), maxRetry)
	memory.stale++
	return ctrl.Result{RequeueAfter: delay}
}

const (
	// startTimeout limits a start, so that one that hangs does not block the disks for other
	// machines.
	startTimeout = time.Minute
	// turnDelay is the delay before a machine that waits for its turn is requeued; it doubles up to
	// maxTurnDelay.
	turnDelay    = 50 * time.Millisecond
	maxTurnDelay = 2 * time.Second
	// podPage is the page size of lists of pods.
	podPage = 500
)
