package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/pools"
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
}

// Reconcile implements controller-runtime's Reconciler.
func (a *assignments) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	in := client.InNamespace(req.Namespace)
	var machines machineList
	if err := a.cache.List(ctx, &machines, in, client.MatchingFields{byPool: anyPool}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the assigned machines of namespace %s: %w", req.Namespace, err)
	}
	existing, err := a.pools(ctx, req.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	var assigned []spec.VirtualMachine
	for i := range machines.Items {
		if vm, err := machines.Items[i].decode(); err == nil {
			assigned = append(assigned, *vm)
		}
	}
	updates, wake := pools.Upkeep(assigned, existing, a.now())
	for i := range updates {
		if err := a.write(ctx, &updates[i]); err != nil {
			if stale(err) {
				return ctrl.Result{RequeueAfter: recheck}, nil
			}
			return ctrl.Result{}, err
		}
	}
	if wake.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(wake.Sub(a.now()), time.Millisecond)}, nil
}

// pools are all of a namespace. Of one that cannot be understood it is told that it
// cannot, and no more is known than that it exists: its assignments stay, and the
// other pools are not held up.
func (a *assignments) pools(ctx context.Context, namespace string) ([]spec.VmPool, error) {
	var all poolList
	if err := a.cache.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the pools of namespace %s: %w", namespace, err)
	}
	var out []spec.VmPool
	for i := range all.Items {
		p := &all.Items[i]
		decoded, err := p.decode()
		if err == nil {
			delete(a.told, p.UID)
			out = append(out, *decoded)
			continue
		}
		out = append(out, spec.VmPool{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID}})
		if a.told[p.UID] != p.ResourceVersion {
			a.told[p.UID] = p.ResourceVersion
			log.FromContext(ctx).Info("a pool is passed over", "pool", p.Name, "reason", err.Error())
			tell(a.events, p, reconcile.UnreadablePool(err))
		}
	}
	return out, nil
}

func (a *assignments) write(ctx context.Context, u *pools.Update) error {
	patch, err := u.Patch()
	if err != nil {
		return err
	}
	o := newObject(u.Namespace, u.Name)
	err = a.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(pools.StatusManager))
	a.writes.count("patch", spec.KindVirtualMachine+"/status", err)
	if err != nil {
		return fmt.Errorf("assignment of %s/%s: %w", u.Namespace, u.Name, err)
	}
	log.FromContext(ctx).Info("assignment changed", "machine", u.Name, "cause", string(u.Cause))
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
