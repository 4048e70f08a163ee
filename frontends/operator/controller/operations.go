package controller

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/vmop/sdk/vmop/reconcile"
	operationkind "github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

type (
	storedOperationList = keptList[spec.VirtualMachineOperation]
)

func operationRegistration() registration {
	return keptRegistration[spec.VirtualMachineOperation](spec.KindOperation, spec.ResourceOperations, addOperations)
}

// addOperations adds the controller of operations. A request has the name of a machine, so that one
// worker decides about all its operations and sees what it wrote for one before the next.
func addOperations(s *setup) error {
	ended, err := newOperationCounter(metrics.Registry)
	if err != nil {
		return err
	}
	k := &operations{cleanup: s.options.Operations, ended: ended}
	machineOf := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		return requests(o.GetNamespace(), operatedOn(o))
	})
	// Most machines have no operation, and most changes of one do not concern operations.
	ofMachine := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		of := []string{o.GetName()}
		if _, is := o.(*corev1.Pod); is {
			of = podMachines(o)
		}
		return requests(o.GetNamespace(), slices.DeleteFunc(of, func(machine string) bool {
			var l storedOperationList
			return list(ctx, s.reader.cache, &l, byMachine, o.GetNamespace(), machine) != nil || len(l.Items) == 0
		}))
	})
	return addKind(s, "operations", k.kind(), controller.Options{MaxConcurrentReconciles: 2}, func(b *builder.Builder) *builder.Builder {
		return b.Watches(&storedOperation{}, machineOf).Watches(&machine{}, ofMachine).Watches(&corev1.Pod{}, ofMachine)
	})
}

type operations struct {
	cleanup operationkind.Cleanup
	ended   *prometheus.CounterVec
}

func (k *operations) kind() kind[operationkind.Snapshot] {
	return kind[operationkind.Snapshot]{observe: k.observe, decide: operationkind.Decide, told: k.countEnds}
}

func (k *operations) observe(w *look) *sight[operationkind.Snapshot] {
	if w.awaits() {
		w.behind = true
		return nil
	}
	// What the caches do not show was deleted.
	clear(w.memory.written)
	var all storedOperationList
	w.list(&all, byMachine, w.name)
	if w.err != nil || len(all.Items) == 0 {
		return nil
	}
	out := &sight[operationkind.Snapshot]{now: w.now()}
	s := &out.snapshot
	*s = operationkind.Snapshot{Cleanup: k.cleanup, Now: out.now, Failures: w.refusals(out.now)}
	for i := range all.Items {
		if o, err := all.Items[i].decode(); err == nil {
			s.Operations = append(s.Operations, *o)
		}
	}
	key := types.NamespacedName{Namespace: w.namespace, Name: w.name}
	stored := &machine{}
	if w.err == nil {
		var found bool
		if found, w.err = get(w.ctx, w.cache, key, stored); found {
			s.Machine, s.Unreadable = operated(stored)
		}
	}
	s.Pod = machineLook{w}.ownPod(s.Machine)
	if w.err == nil && operationkind.NeedsFresh(*s) {
		fresh, found := &machine{}, false
		s.Machine, s.Fresh = nil, true
		if found, w.err = get(w.ctx, w.live, key, fresh); found {
			s.Machine, s.Unreadable = operated(fresh)
		}
	}
	return out
}

// operated returns a machine with the trustworthy part of its status, or why there is none.
func operated(m *machine) (vm *spec.VirtualMachine, unreadable string) {
	vm, err := m.decode()
	if err != nil {
		return nil, err.Error()
	}
	// The status of a machine that no runner of ours has reported on may be VM-Operator's.
	vm.Status = *m.authors.Believed(&vm.Status, !m.authors.Reported())
	return vm, ""
}

func (k *operations) countEnds(ctx context.Context, o *sight[operationkind.Snapshot], events []reconcile.Event) {
	for i := range events {
		e := &events[i]
		if phase := operationkind.TellsEnd(e); phase != "" {
			k.ended.WithLabelValues(e.Action, string(phase)).Inc()
			log.FromContext(ctx).Info("operation ended", "operation", e.About.Name, "type", e.Action, "phase", string(phase), "note", e.Note)
		}
	}
}

func newOperationCounter(to prometheus.Registerer) (*prometheus.CounterVec, error) {
	return register(to, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vmop_operations_total",
		Help: "Operations that have ended, by type and phase: Completed, Failed or Superseded.",
	}, []string{"type", "phase"}))
}
