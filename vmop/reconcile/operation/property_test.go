package operation_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var (
	machines = []string{"a", "b"}
	policies = []spec.RunPolicy{"", spec.RunPolicyManual, spec.RunPolicyAlwaysOnUnlessStoppedManually, spec.RunPolicyAlwaysOn, spec.RunPolicyAlwaysOff}
	phases   = []string{"", spec.PhaseStopped, spec.PhaseStopped, spec.PhasePending, spec.PhaseUnknown}
)

// Whatever machines, people and caches do, and wherever an operator dies: one operation
// of a machine is in progress at most, none is carried out twice or in vain, each ends
// in its time, and what was refused has changed nothing. See world_test.go.
func TestOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { life(t, false) })
}

// Caches that are older than what the operator itself has written are no reason to do
// anything twice.
func TestOperationsWithOldCaches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { life(t, true) })
}

func life(t *rapid.T, stale bool) {
	w := newWorld(t)
	w.stale = stale
	w.cleanup = operation.Cleanup{Keep: rapid.IntRange(1, 3).Draw(t, "keep"), For: choose(t, "for", time.Minute, time.Hour)}
	for _, name := range machines {
		w.addMachine(name, choose(t, "policy", policies...), choose(t, "phase", phases...))
		w.see(3)
	}
	steps := rapid.IntRange(5, 80).Draw(t, "steps")
	for range steps {
		w.step(t)
	}
	w.settle()
}

// step is something that happens.
func (w *world) step(t *rapid.T) {
	name := choose(t, "machine", machines...)
	vm := w.truth.vms[name]
	op := ""
	if keys := slices.Sorted(maps.Keys(w.truth.ops)); len(keys) > 0 {
		op = choose(t, "operation", keys...)
	}
	switch what := rapid.IntRange(0, 39).Draw(t, "what"); {
	case what < 12:
		w.reconcile(name, -1)
	case what < 15:
		w.reconcile(name, rapid.IntRange(0, 2).Draw(t, "writes"))
		clear(w.wrote)
		w.note("another operator")
		if !w.stale {
			w.see(3)
		}
	case what < 22:
		w.see(rapid.IntRange(0, 3).Draw(t, "cache"))
	case what < 28:
		w.proceeds(name)
	case what < 32:
		w.addOperation(fmt.Sprintf("%s%d", choose(t, "letter", "x", "y", "z"), w.serial), name,
			choose(t, "type", spec.OperationStart, spec.OperationStop, spec.OperationRestart, spec.OperationRestart, spec.OperationMigrate, "Nonsense"), rapid.Bool().Draw(t, "force"))
	case what < 35:
		w.now = w.now.Add(choose(t, "time", time.Second, 20*time.Second, 3*time.Minute, 20*time.Minute))
	case what == 35 && op != "":
		w.deleteOperation(op)
	case what == 36 && op != "":
		// Somebody gets around the definition.
		o := w.truth.ops[op].DeepCopy()
		o.Spec.Type, o.Spec.Force = choose(t, "type", spec.OperationStart, spec.OperationStop), false
		o.Generation, o.ResourceVersion = o.Generation+1, w.version()
		w.truth.ops[op] = o
		w.note("%s is changed", op)
	case what == 37 && vm != nil:
		w.others[name]++
		w.update(name, func(vm *spec.VirtualMachine) {
			vm.Annotations = maps.Clone(vm.Annotations)
			if vm.Annotations == nil {
				vm.Annotations = map[string]string{}
			}
			vm.Annotations[names.AnnotationPowerRequest] = machine.Request(choose(t, "verb", machine.VerbStart, machine.VerbStop, machine.VerbRestart), w.version())
		})
		w.note("somebody asks %s: %s", name, w.truth.vms[name].Annotations[names.AnnotationPowerRequest])
	case what == 38 && vm != nil:
		w.others[name]++
		w.update(name, func(vm *spec.VirtualMachine) {
			vm.Spec.RunPolicy = choose(t, "policy", policies...)
			vm.Spec.VM.State = choose(t, "state", spec.StateRunning, spec.StateStopped)
		})
		w.note("machine %s: policy %q, state %s", name, w.truth.vms[name].Spec.RunPolicy, w.truth.vms[name].Spec.VM.State)
	case what == 39:
		w.others[name]++
		switch {
		case vm == nil:
			w.addMachine(name, choose(t, "policy", policies...), choose(t, "phase", phases...))
		case vm.DeletionTimestamp == nil:
			w.update(name, func(vm *spec.VirtualMachine) { vm.DeletionTimestamp = &metav1.Time{Time: w.now} })
		default:
			delete(w.truth.vms, name)
			delete(w.truth.pods, name)
		}
		w.note("machine %s is made or deleted", name)
	}
}

// settle lets time pass while no machine does anything any more. Everything ends.
func (w *world) settle() {
	w.t.Helper()
	for i := range 12 {
		for _, name := range machines {
			quiet := false
			for range 40 {
				w.see(3)
				before := w.serial
				if plan := w.reconcile(name, -1); len(plan.Actions) == 0 {
					quiet = true
					break
				} else if w.serial == before && i > 0 && !deletes(plan.Actions) {
					w.fail("a plan that changes nothing: %+v", plan)
				}
			}
			if !quiet {
				w.fail("there is no end of writes for machine %s", name)
			}
		}
		w.now = w.now.Add(10 * time.Minute)
	}
	for _, o := range w.truth.ops {
		switch {
		case o.DeletionTimestamp == nil && !o.Status.Phase.Finished():
			w.fail("%s is %s for ever", o.Name, o.Status.Phase)
		case slices.Contains(o.Finalizers, names.FinalizerOperation):
			w.fail("%s (%s) is held for ever", o.Name, o.Status.Phase)
		case o.Status.Phase == spec.OperationFailed && o.Status.StartTime == nil && w.signals[o.UID] > 0:
			w.fail("%s was refused, and its machine was told", o.Name)
		case !w.now.Before(o.Status.CompletionTime.Add(w.cleanup.For + 10*time.Minute)):
			w.fail("%s is not cleaned up", o.Name)
		}
	}
}
