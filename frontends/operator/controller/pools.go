package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/vmop/sdk/vmop/reconcile/pools"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
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
	now    func() time.Time
}

// Reconcile implements controller-runtime's Reconciler.
func (a *assignments) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	in := client.InNamespace(req.Namespace)
	var machines machineList
	if err := a.cache.List(ctx, &machines, in, client.MatchingFields{byPool: anyPool}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the assigned machines of namespace %s: %w", req.Namespace, err)
	}
	if len(machines.Items) == 0 {
		return ctrl.Result{}, nil
	}
	var all poolList
	if err := a.cache.List(ctx, &all, in); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the pools of namespace %s: %w", req.Namespace, err)
	}
	var assigned []spec.VirtualMachine
	for i := range machines.Items {
		if vm, err := machines.Items[i].decode(); err == nil {
			assigned = append(assigned, *vm)
		}
	}
	var existing []spec.VmPool
	for i := range all.Items {
		pool, err := all.Items[i].decode()
		if err != nil {
			// A pool that is not in view would lose its assignments.
			return ctrl.Result{}, err
		}
		existing = append(existing, *pool)
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
