package operationtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// Two machines of one namespace, or two of one name.
	machines = [][]string{{"a", "b"}, {"a", "shop/a"}}
	policies = []spec.RunPolicy{"", spec.RunPolicyManual, spec.RunPolicyAlwaysOnUnlessStoppedManually, spec.RunPolicyAlwaysOn, spec.RunPolicyAlwaysOff}
	phases   = []string{"", spec.PhaseStopped, spec.PhaseStopped, spec.PhasePending, spec.PhaseUnknown}
)

func (w *world) life() *promises.Violation {
	return promises.Broken(func() {
		w.cleanup = operation.Cleanup{Keep: 1 + w.Draw("keep", 3), For: choose(w, "for", time.Minute, time.Hour)}
		w.machines = choose(w, "machines", machines...)
		for _, name := range w.machines {
			w.addMachine(name, choose(w, "policy", policies...), choose(w, "phase", phases...))
			w.see(3)
		}
		for range 5 + w.Draw("steps", 76) {
			w.step()
		}
		w.settle()
	})
}

func (w *world) step() {
	name := choose(w, "machine", w.machines...)
	vm := w.truth.vms[name]
	op := ""
	if keys := slices.Sorted(maps.Keys(w.truth.ops)); len(keys) > 0 {
		op = choose(w, "operation", keys...)
	}
	switch what := w.Draw("what", 45); {
	case what < 12:
		w.reconcile(name, -1)
	case what < 15:
		w.reconcile(name, w.Draw("writes", 3))
		clear(w.wrote)
		w.Note("another operator")
		if !w.stale {
			w.see(3)
		}
	case what < 22:
		w.see(w.Draw("cache", 4))
	case what < 28:
		w.proceeds(name)
	case what < 32:
		opName := fmt.Sprintf("%s%d", choose(w, "letter", "x", "y", "z"), w.Serial)
		if _, twin, elsewhere := strings.Cut(op, "/"); !elsewhere && op != "" && w.truth.ops[neighbour(name, op)] == nil {
			opName = op // an operation's name in the other namespace
		} else if elsewhere && w.truth.ops[neighbour(name, twin)] == nil {
			opName = twin
		}
		w.addOperation(opName, name,
			choose(w, "type", spec.OperationStart, spec.OperationStop, spec.OperationRestart, spec.OperationRestart, spec.OperationMigrate, "Nonsense"), w.Draw("force", 2) == 1)
	case what < 35:
		w.Now = w.Now.Add(choose(w, "time", time.Second, 20*time.Second, 3*time.Minute, 20*time.Minute))
	case what == 35 && op != "":
		w.deleteOperation(op)
	case what == 36 && op != "":
		// The definition is bypassed.
		o := w.truth.ops[op].DeepCopy()
		o.Spec.Type, o.Spec.Force = choose(w, "type", spec.OperationStart, spec.OperationStop), false
		o.Generation, o.ResourceVersion = o.Generation+1, w.Version()
		w.truth.ops[op] = o
		w.Note("%s is changed", op)
	case what == 37 && vm != nil:
		w.others[name]++
		w.update(name, func(vm *spec.VirtualMachine) {
			vm.Annotations = maps.Clone(vm.Annotations)
			if vm.Annotations == nil {
				vm.Annotations = map[string]string{}
			}
			vm.Annotations[names.AnnotationPowerRequest] = machine.Request(choose(w, "verb", machine.VerbStart, machine.VerbStop, machine.VerbRestart), w.Version())
		})
		w.Note("somebody asks %s: %s", name, w.truth.vms[name].Annotations[names.AnnotationPowerRequest])
	case what == 38 && vm != nil:
		w.others[name]++
		w.update(name, func(vm *spec.VirtualMachine) {
			vm.Spec.RunPolicy = choose(w, "policy", policies...)
			vm.Spec.VM.State = choose(w, "state", spec.StateRunning, spec.StateStopped)
		})
		w.Note("machine %s: policy %q, state %s", name, w.truth.vms[name].Spec.RunPolicy, w.truth.vms[name].Spec.VM.State)
	case what == 39:
		w.others[name]++
		switch {
		case vm == nil:
			w.addMachine(name, choose(w, "policy", policies...), choose(w, "phase", phases...))
		case vm.DeletionTimestamp == nil:
			w.update(name, func(vm *spec.VirtualMachine) { vm.DeletionTimestamp = &metav1.Time{Time: w.Now} })
		default:
			delete(w.truth.vms, name)
			delete(w.truth.pods, name)
		}
		w.Note("machine %s is made or deleted", name)
	case what >= 42:
		w.held[name] = choose(w, "held", "", conditions.ReasonRestartPending, conditions.ReasonRestartBlocked)
		w.Note("machine %s is held: %s", name, w.held[name])
	case what >= 40:
		w.forbidden[name] = !w.forbidden[name]
		w.Note("machine %s may be written: %v", name, !w.forbidden[name])
	}
}

// settle lets time pass while machines do nothing. Each operation must end, even while machines
// cannot be written.
func (w *world) settle() {
	for i := range 12 {
		for _, name := range w.machines {
			quiet := false
			for range 40 {
				w.see(3)
				before, refusals := w.Serial, w.refusals
				if plan := w.reconcile(name, -1); len(plan.Actions) == 0 {
					quiet = true
					break
				} else if w.Serial == before && w.refusals == refusals && i > 0 && !deletes(plan.Actions) {
					w.Violated("the world comes to rest", "a plan that changes nothing: %+v", plan)
				}
			}
			if w.checkHeld(name); !quiet {
				w.Violated("the world comes to rest", "there is no end of writes for machine %s", name)
			}
		}
		w.Now = w.Now.Add(10 * time.Minute)
	}
	for _, o := range w.truth.ops {
		switch {
		case o.DeletionTimestamp == nil && !o.Status.Phase.Finished():
			w.Violated("every operation ends", "%s is %s for ever", o.Name, o.Status.Phase)
		case slices.Contains(o.Finalizers, names.FinalizerOperation):
			w.Violated("no operation is held for ever", "%s (%s) is held for ever", o.Name, o.Status.Phase)
		case !w.Now.Before(o.Status.CompletionTime.Add(w.cleanup.For + 10*time.Minute)):
			w.Violated("what has ended is cleaned up", "%s is not cleaned up", o.Name)
		}
	}
}
