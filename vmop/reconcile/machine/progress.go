package machine

import (
	"strings"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Progress is how far a machine is on its way to the state of its specification.
type Progress struct {
	// Reached: the machine runs or is stopped, as it should.
	Reached bool
	// Waiting describes, for users, what it waits for otherwise.
	Waiting string
	// Unanswered: the operator has not begun yet, which is normal for some seconds.
	Unanswered bool
}

// ProgressOf returns the progress of a machine in a cluster by its status.
func ProgressOf(vm *spec.VirtualMachine) Progress {
	s := &vm.Status
	if s.ObservedGeneration < vm.Generation && s.Phase != spec.PhaseTerminating {
		return Progress{Waiting: "the operator has not acted upon the change yet; is it running?", Unanswered: true}
	}
	if s.Phase != spec.PhaseTerminating && !Answered(vm) {
		return Progress{Waiting: "the operator has not acted upon the request yet; is it running?", Unanswered: true}
	}
	wanted := spec.PhaseStopped
	if vm.ShouldRun() {
		wanted = spec.PhaseRunning
	}
	if s.Phase == wanted {
		return Progress{Reached: true}
	}
	first := []string{spec.ConditionConfigurationApplied, spec.ConditionPodReady, spec.ConditionGuestExecuting}
	if s.Phase == spec.PhaseTerminating {
		first = first[1:] // the phase says that the machine is being deleted
	}
	for _, t := range first {
		c := spec.FindCondition(s.Conditions, t)
		if c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
			return Progress{Waiting: c.Message}
		}
	}
	return Progress{Waiting: "the machine is " + strings.ToLower(s.Phase)}
}
