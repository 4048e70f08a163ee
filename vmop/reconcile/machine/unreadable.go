package machine

import (
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unreadable decides about a stored machine that the types cannot decode: nothing is done but to
// report why. Of the machine only the metadata counts; status is the stored one as JSON values,
// nil if there is none, and err is the decoding error. The plan is empty if that is reported
// already; the status is not changed.
func Unreadable(vm metav1.Object, status map[string]any, err error, now time.Time) reconcile.Plan {
	message := err.Error() + "; nothing is changed until this is corrected"
	part := map[string]any{}
	for _, field := range operatorFields {
		if v, ok := status[field]; ok {
			part[field] = v
		}
	}
	var since any = now.UTC().Format(time.RFC3339)
	conditions := []any{}
	stored, _ := status["conditions"].([]any)
	for _, t := range spec.OperatorConditionTypes() {
		for _, c := range stored {
			fields, ok := c.(map[string]any)
			switch {
			case !ok || fields["type"] != t:
			case t != spec.ConditionConfigurationApplied:
				conditions = append(conditions, c)
			case fields["status"] == string(metav1.ConditionFalse):
				if fields["message"] == message {
					return reconcile.Plan{}
				}
				if old, ok := fields["lastTransitionTime"].(string); ok {
					since = old
				}
			}
		}
	}
	part["conditions"] = append(conditions, map[string]any{
		"type": spec.ConditionConfigurationApplied, "status": string(metav1.ConditionFalse),
		"reason": spec.ReasonInvalidSpecification, "message": message,
		"observedGeneration": vm.GetGeneration(), "lastTransitionTime": since,
	})
	return reconcile.Plan{
		Statuses: []reconcile.StatusApply{{
			Kind: names.KindVirtualMachine, Name: vm.GetName(), UID: vm.GetUID(), Manager: names.OperatorStatusManager, Status: part,
		}},
		Events: []reconcile.Event{{Type: corev1.EventTypeWarning, Reason: spec.ReasonInvalidSpecification, Action: "Reconcile", Note: message}},
	}
}
