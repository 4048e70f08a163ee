package machine_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

func TestProgressOf(t *testing.T) {
	waits := func(kind, message string) []spec.Condition {
		return []spec.Condition{{Type: kind, Status: metav1.ConditionFalse, Message: message}}
	}
	for name, tt := range map[string]struct {
		state      spec.MachineState
		seen       int64
		phase      string
		conditions []spec.Condition
		want       machine.Progress
	}{
		"an operator that is away": {
			state: spec.StateRunning, seen: 1, phase: spec.PhaseRunning,
			want: machine.Progress{Waiting: "the operator has not acted upon the change yet; is it running?", Unanswered: true},
		},
		"a machine that runs":    {state: spec.StateRunning, seen: 2, phase: spec.PhaseRunning, want: machine.Progress{Reached: true}},
		"a machine that stopped": {state: spec.StateStopped, seen: 2, phase: spec.PhaseStopped, want: machine.Progress{Reached: true}},
		"a pod that waits": {
			state: spec.StateRunning, seen: 2, phase: spec.PhasePending, conditions: waits(spec.ConditionPodReady, "no node takes it"),
			want: machine.Progress{Waiting: "no node takes it"},
		},
		"a specification that is refused": {
			state: spec.StateRunning, seen: 2, phase: spec.PhasePending, conditions: waits(spec.ConditionConfigurationApplied, "spec.vm.disks[0]: refused"),
			want: machine.Progress{Waiting: "spec.vm.disks[0]: refused"},
		},
		"a guest that is paused": {
			state: spec.StateRunning, seen: 2, phase: spec.PhasePaused, conditions: waits(spec.ConditionGuestExecuting, "it was paused"),
			want: machine.Progress{Waiting: "it was paused"},
		},
		"nobody says why": {state: spec.StateStopped, seen: 2, phase: spec.PhaseStopping, want: machine.Progress{Waiting: "the machine is stopping"}},
	} {
		t.Run(name, func(t *testing.T) {
			vm := &spec.VirtualMachine{}
			vm.Generation, vm.Spec.VM.State = 2, tt.state
			vm.Status.ObservedGeneration, vm.Status.Phase, vm.Status.Conditions = tt.seen, tt.phase, tt.conditions
			if got := machine.ProgressOf(vm); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
