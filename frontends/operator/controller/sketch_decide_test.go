package controller

import (
	"fmt"
	"reflect"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file stands for vmop/reconcile/greeting/decide.go.

const kindGreeting = "Greeting"

// greetingSnapshot is all that a decision about one greeting depends on.
type greetingSnapshot struct {
	Greeting  *Greeting
	ConfigMap *corev1.ConfigMap // nil: there is none
	Failures  []reconcile.Failure
	Now       time.Time
}

// decideGreeting is total and deterministic.
func decideGreeting(s greetingSnapshot) (plan reconcile.Plan) {
	g := s.Greeting
	if g.DeletionTimestamp != nil {
		return plan // its ConfigMap goes with it
	}
	said := spec.Condition{
		Type: "Said", Status: metav1.ConditionTrue, Reason: "Said",
		ObservedGeneration: g.Generation, LastTransitionTime: metav1.NewTime(s.Now),
	}
	wanted := greetingConfigMap(g)
	if s.ConfigMap == nil || !reconcile.Applied(wanted, s.ConfigMap) {
		var write reconcile.Action = reconcile.Apply{Object: wanted}
		if s.ConfigMap == nil {
			write = reconcile.Create{Object: wanted}
		}
		if f := reconcile.Refused(s.Failures, write.Target(), s.Now); f != nil {
			plan.Wake = f.RetryAt()
			said.Status, said.Reason, said.Message = metav1.ConditionFalse, spec.ReasonWriteRefused, fmt.Sprintf("%s: %s", f.Target, f.Message)
		} else {
			plan.Actions = append(plan.Actions, write)
		}
	}
	status := GreetingStatus{Conditions: spec.WithCondition(g.Status.Conditions, said)}
	if !reflect.DeepEqual(status, g.Status) {
		plan.Statuses = append(plan.Statuses, reconcile.StatusOf(kindGreeting, g, names.OperatorStatusManager, status))
		plan.Events = append(plan.Events, reconcile.Event{Type: corev1.EventTypeNormal, Reason: said.Reason, Action: "Reconcile", Note: g.Spec.Text})
	}
	return plan
}

// greetingConfigMap is the object of a greeting.
func greetingConfigMap(g *Greeting) *corev1.ConfigMap {
	out := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: names.KindConfigMap},
		ObjectMeta: metav1.ObjectMeta{
			Name: g.Name, Namespace: g.Namespace,
			Labels:          map[string]string{names.LabelName: names.AppName, names.LabelManagedBy: names.ManagedBy},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: spec.GroupVersion().String(), Kind: kindGreeting, Name: g.Name, UID: g.UID}},
		},
		Data: map[string]string{"text": g.Spec.Text},
	}
	reconcile.Stamp(out)
	return out
}
