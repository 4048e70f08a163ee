package disk

import (
	"cmp"
	"fmt"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// do adds an action to the plan. If the API server has just refused it, do reports that in the
// status instead and returns false.
func (d *decision) do(a reconcile.Action) bool {
	f := d.plan.Add(d.s.Failures, d.s.Now, a)
	if f == nil {
		return true
	}
	phase := spec.DiskPending
	if f.NamespaceGoes {
		phase = d.next.Phase
	}
	reason, text := f.Told(d.noun, cmp.Or(d.disk.Namespace, d.s.Settings.ImageNamespace))
	d.say(phase, metav1.ConditionFalse, reason, "%s", text)
	return false
}

func (d *decision) condition(kind string, status metav1.ConditionStatus, reason, format string, args ...any) {
	d.next.Conditions = spec.WithCondition(d.next.Conditions, spec.Condition{
		Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...),
		ObservedGeneration: d.disk.Generation, LastTransitionTime: metav1.NewTime(d.s.Now.UTC().Truncate(time.Second)),
	})
}

func (d *decision) say(phase spec.DiskPhase, status metav1.ConditionStatus, reason, format string, args ...any) {
	if phase == "" {
		phase = spec.DiskPending
	}
	d.next.Phase = phase
	d.condition(conditions.Ready, status, reason, format, args...)
}

// wait reports what the disk waits for, and fail what a user has to do.
func (d *decision) wait(reason, format string, args ...any) {
	d.say(spec.DiskProvisioning, metav1.ConditionFalse, reason, format, args...)
}

func (d *decision) fail(reason, format string, args ...any) {
	d.say(spec.DiskFailed, metav1.ConditionFalse, reason, format, args...)
}
