package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/observation"
	poolkind "github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// assignments keeps up the assignments of the machines of a namespace: the
// request's name is empty.
type assignments struct {
	cache  client.Reader
	client client.Client
	writes *writeCounter
	events events.EventRecorder
	now    func() time.Time
	// told are the versions of pools of which was told that they cannot be
	// understood. There is one worker.
	told map[types.UID]string
	// leads reports whether this operator may write.
	leads func() bool
}

// Reconcile implements controller-runtime's Reconciler.
func (a *assignments) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	in := client.InNamespace(req.Namespace)
	var machines machineList
	if err := a.cache.List(ctx, &machines, in, client.MatchingFields{byPool: anyPool}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the assigned machines of namespace %s: %w", req.Namespace, err)
	}
	snapshot := poolkind.Snapshot{Now: a.now()}
	if err := a.pools(ctx, req.Namespace, &snapshot); err != nil {
		return ctrl.Result{}, err
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		if vm, err := m.decode(); err == nil {
			// A machine that no runner of ours has reported about may have VM-Operator's.
			vm.Status = *m.authors.Believed(&vm.Status, !m.authors.Reported())
			snapshot.Machines = append(snapshot.Machines, *vm)
		}
	}
	plan := poolkind.Decide(snapshot)
	for i := range plan.Events {
		tell(a.events, nil, &plan.Events[i])
	}
	for _, action := range plan.Actions {
		if err := a.execute(ctx, req.Namespace, action); err != nil {
			if observation.Stale(err) {
				return ctrl.Result{RequeueAfter: recheck}, nil
			}
			return ctrl.Result{}, err
		}
	}
	if plan.Wake.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(plan.Wake.Sub(a.now()), time.Millisecond)}, nil
}

// pools adds all pools of a namespace to a snapshot.
func (a *assignments) pools(ctx context.Context, namespace string, s *poolkind.Snapshot) error {
	var all poolList
	if err := a.cache.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list the pools of namespace %s: %w", namespace, err)
	}
	for i := range all.Items {
		p := &all.Items[i]
		decoded, err := p.decode()
		if err == nil {
			delete(a.told, p.UID)
			s.Pools = append(s.Pools, *decoded)
			continue
		}
		told := a.told[p.UID] == p.ResourceVersion
		a.told[p.UID] = p.ResourceVersion
		if !told {
			log.FromContext(ctx).Info("a pool is passed over", "pool", p.Name, "reason", err.Error())
		}
		s.Unreadable = append(s.Unreadable, poolkind.Unreadable{
			Pool: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID}, Err: err, Told: told,
		})
	}
	return nil
}

func (a *assignments) execute(ctx context.Context, namespace string, action reconcile.Action) error {
	if !a.leads() {
		return errNotLeading
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	t, e := action.Target(), executor{client: a.client, writes: a.writes, now: a.now, leads: a.leads}
	_, err := e.send(ctx, namespace, action)
	a.writes.count(t.Verb, t.Kind, err)
	if err != nil {
		return fmt.Errorf("%s in namespace %s: %w", t, namespace, err)
	}
	log.FromContext(ctx).Info("assignment changed", "machine", t.Name)
	return nil
}

// assignmentChanged lets events of machines through that matter to
// assignments.
func assignmentChanged() predicate.Predicate {
	assigned := func(o client.Object) bool { return len(poolOf(o)) > 0 }
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return assigned(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return assigned(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if !assigned(e.ObjectOld) && !assigned(e.ObjectNew) {
				return false
			}
			return !equality.Semantic.DeepEqual(usage(e.ObjectOld), usage(e.ObjectNew))
		},
	}
}

// usage is what of a machine says who uses it.
func usage(o client.Object) []any {
	m, ok := o.(*machine)
	if !ok {
		return nil
	}
	s := m.summary().Status
	out := []any{s.Assignment, s.ConsoleUser}
	for _, c := range s.Conditions {
		if c.Type == spec.ConditionConsoleConnected || c.Type == spec.ConditionRunning {
			out = append(out, c.Status, c.LastTransitionTime)
		}
	}
	return out
}
