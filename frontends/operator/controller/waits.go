package controller

import (
	"slices"

	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type wait struct{ condition, reason string }

var allPhases = []string{
	spec.PhasePending, spec.PhaseStarting, spec.PhaseRunning, spec.PhasePaused, spec.PhaseDegraded, spec.PhaseStopping, spec.PhaseStopped, spec.PhaseTerminating, spec.PhaseUnknown,
}

// phaseNamed returns the phase of a status. A machine without one has not been reconciled yet and
// is pending: Unknown is an alarm, which a mass creation is not.
func phaseNamed(phase string) string {
	if phase == "" {
		return spec.PhasePending
	}
	if i := slices.Index(allPhases, phase); i >= 0 {
		return allPhases[i] // a shared string, not one for each machine
	}
	return spec.PhaseUnknown
}

// conditionTypes are shared strings, so that not each machine holds its own.
var conditionTypes = spec.OperatorConditionTypes()

// waitingBy returns what a condition says that its machine waits for.
func waitingBy(c *condition) (w wait, waits bool) {
	i := slices.Index(conditionTypes, c.Type)
	if i < 0 || !machinekind.Waits(c.Type, metav1.ConditionStatus(c.Status), c.Reason) {
		return wait{}, false
	}
	return wait{conditionTypes[i], c.Reason}, true
}

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	LastTransitionTime string `json:"lastTransitionTime"`
}
