package machine

import (
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Waits reports whether a condition of a machine says that it is not as it should be. That is so
// for each condition in its status.waits, except Ready, which sums up the others; and for those
// without an object to wait for, such as a delayed restart, or changes that wait for one.
func Waits(conditionType string, status metav1.ConditionStatus, reason string) bool {
	switch conditionType {
	case spec.ConditionConfigurationApplied, spec.ConditionBlockDevicesReady:
		return status != metav1.ConditionTrue
	case spec.ConditionPodReady:
		return status != metav1.ConditionTrue && reason != spec.ReasonMachineStopped
	case spec.ConditionProvisioningReady, spec.ConditionSoleOperator, spec.ConditionVirtualMachineClassReady, spec.ConditionSizingPolicyMatched:
		return status == metav1.ConditionFalse // unknown until they are examined
	case spec.ConditionAwaitingRestart:
		return status == metav1.ConditionTrue
	}
	return false
}
