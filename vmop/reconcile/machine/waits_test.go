package machine_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A machine that is as it should be waits for nothing, and what has no object is waited for
// all the same.
func TestConditionsThatAreWaits(t *testing.T) {
	for _, c := range []struct {
		kind   string
		status metav1.ConditionStatus
		reason string
		waits  bool
	}{
		{spec.ConditionPodReady, metav1.ConditionTrue, spec.ReasonPodRunning, false},
		{spec.ConditionPodReady, metav1.ConditionFalse, spec.ReasonMachineStopped, false},
		{spec.ConditionPodReady, metav1.ConditionFalse, spec.ReasonRestartDelayed, true},
		{spec.ConditionPodReady, metav1.ConditionUnknown, spec.ReasonNodeLost, true},
		{spec.ConditionConfigurationApplied, metav1.ConditionUnknown, spec.ReasonConfigurationNotApplied, true},
		{spec.ConditionBlockDevicesReady, metav1.ConditionFalse, spec.ReasonClaimGone, true},
		{spec.ConditionProvisioningReady, metav1.ConditionUnknown, spec.ReasonMachineStopped, false},
		{spec.ConditionProvisioningReady, metav1.ConditionFalse, spec.ReasonProvisioningNotReady, true},
		{spec.ConditionSoleOperator, metav1.ConditionFalse, spec.ReasonTwoOperators, true},
		{spec.ConditionVirtualMachineClassReady, metav1.ConditionFalse, spec.ReasonVirtualMachineClassNotFound, true},
		{spec.ConditionSizingPolicyMatched, metav1.ConditionUnknown, spec.ReasonVirtualMachineClassNotFound, false},
		{spec.ConditionAwaitingRestart, metav1.ConditionTrue, spec.ReasonChangesPendingRestart, true},
		{spec.ConditionAwaitingRestart, metav1.ConditionFalse, spec.ReasonNoRestartRequired, false},
		{spec.ConditionReady, metav1.ConditionFalse, spec.ReasonStarting, false},
		{spec.ConditionAccelerated, metav1.ConditionFalse, spec.ReasonNoKVMDevice, false},
	} {
		if got := machine.Waits(c.kind, c.status, c.reason); got != c.waits {
			t.Errorf("%s %s %s: %v", c.kind, c.status, c.reason, got)
		}
	}
}
