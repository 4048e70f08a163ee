package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	poolkind "github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func poolRegistration() registration {
	return registration{
		kind: spec.KindVMPool, resource: spec.ResourceVMPools,
		object: func() client.Object { return &pool{} },
		list:   func() client.ObjectList { return &poolList{} },
		add:    addPools,
	}
}

// addPools adds the controller of the assignments of the machines of a namespace: the request's
// name is empty.
func addPools(s *setup) error {
	k := &pools{told: map[types.UID]string{}}
	namespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace()}}}
	})
	return addKind(s, "assignments", k.kind(), controller.Options{MaxConcurrentReconciles: 1}, func(b *builder.Builder) *builder.Builder {
		return b.Watches(&machine{}, namespace, builder.WithPredicates(assignmentChanged())).
			Watches(&machine{}, sizesChanged()).
			// Only this operator writes the status of a pool.
			Watches(&pool{}, namespace, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	})
}

type pools struct {
	// told are the versions of pools that were reported as not decodable. There is one worker.
	told map[types.UID]string
}

func (k *pools) kind() kind[poolkind.Snapshot] {
	return kind[poolkind.Snapshot]{observe: k.observe, decide: poolkind.Decide, done: assigned, told: k.noteTold}
}

func (k *pools) observe(w *look) *sight[poolkind.Snapshot] {
	if w.awaits() {
		w.behind = true
		return nil
	}
	// What the caches do not show was deleted.
	clear(w.memory.written)
	var machines machineList
	w.list(&machines, byPool, anyPool)
	var all poolList
	if w.err == nil {
		if err := w.cache.List(w.ctx, &all, client.InNamespace(w.namespace)); err != nil {
			w.err = fmt.Errorf("list the pools of namespace %s: %w", w.namespace, err)
		}
	}
	if w.err != nil || len(machines.Items)+len(all.Items) == 0 {
		return nil
	}
	out := &sight[poolkind.Snapshot]{now: w.now()}
	s := &out.snapshot
	s.Now, s.Failures = out.now, w.refusals(out.now)
	for i := range machines.Items {
		m := &machines.Items[i]
		if vm, err := m.decode(); err == nil {
			// The status of a machine that no runner of ours has reported on may be VM-Operator's.
			vm.Status = *m.authors.Believed(&vm.Status, !m.authors.Reported())
			s.Machines = append(s.Machines, *vm)
		}
	}
	s.Members = members(w, len(all.Items))
	for i := range all.Items {
		p := &all.Items[i]
		decoded, err := p.decode()
		if err == nil {
			delete(k.told, p.UID)
			s.Pools = append(s.Pools, *decoded)
			continue
		}
		s.Unreadable = append(s.Unreadable, poolkind.Unreadable{
			Pool: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion},
			Err:  err, Told: k.told[p.UID] == p.ResourceVersion,
		})
	}
	return out
}

func members(w *look, pools int) []poolkind.Member {
	if pools == 0 || w.err != nil {
		return nil
	}
	var all machineList
	if err := w.cache.List(w.ctx, &all, client.InNamespace(w.namespace)); err != nil {
		w.err = fmt.Errorf("list the machines of namespace %s: %w", w.namespace, err)
	}
	var out []poolkind.Member
	for i := range all.Items {
		if m := &all.Items[i]; len(m.pools) > 0 {
			out = append(out, poolkind.Member{Pools: m.pools, Assigned: m.pool, Connected: m.connected, Goes: m.DeletionTimestamp != nil})
		}
	}
	return out
}

func (k *pools) noteTold(ctx context.Context, o *sight[poolkind.Snapshot], _ []reconcile.Event) {
	for _, u := range o.snapshot.Unreadable {
		if !u.Told {
			log.FromContext(ctx).Info("a pool is passed over", "pool", u.Pool.Name, "reason", u.Err.Error())
			k.told[u.Pool.UID] = u.Pool.ResourceVersion
		}
	}
}

func assigned(ctx context.Context, a reconcile.Action) {
	log.FromContext(ctx).Info("assignment changed", "machine", a.Target().Name)
}

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

// sizesDelay is how long changes of the sizes of pools are gathered.
const sizesDelay = time.Second

// sizesChanged requests the sizes of pools to be counted shortly after relevant changes of
// machines, together with further changes until then.
func sizesChanged() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	count := func(o client.Object, q queue) {
		q.AddAfter(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace()}}, sizesDelay)
	}
	member := func(o client.Object) *machine {
		if m, is := o.(*machine); is && len(m.pools) > 0 {
			return m
		}
		return nil
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if member(e.Object) != nil {
				count(e.Object, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if member(e.Object) != nil {
				count(e.Object, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			was, is := member(e.ObjectOld), member(e.ObjectNew)
			if (was == nil) != (is == nil) || was != nil && (!slices.Equal(was.pools, is.pools) || was.pool != is.pool ||
				was.connected != is.connected || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil)) {
				count(e.ObjectNew, q)
			}
		},
	}
}

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
