package machine

import (
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type finding struct {
	status          metav1.ConditionStatus // empty: nothing yet
	reason, message string
	// further is what the event adds to the message, which is one line: commands need more.
	further string
	// object is what is waited for, by kind and name; empty if nothing is, or if the wait is
	// reported elsewhere.
	object string
	// warning: a user may have to act.
	warning bool
	// brief: it may pass by itself soon, and is reported when it does not.
	brief bool
}

func (f *finding) ok() bool { return f.status == "" || f.status == metav1.ConditionTrue }

// setProblem records a problem about which a user may have to act. It reports whether that is the
// first one, which stays.
func (f *finding) setProblem(reason, object, format string, args ...any) bool {
	if f.warning {
		return false
	}
	*f = finding{status: metav1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...), object: object, warning: true}
	return true
}

// setWaiting records that something is not yet as it should be, and will be.
func (f *finding) setWaiting(reason, object, format string, args ...any) {
	if f.status == "" {
		*f = finding{status: metav1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...), object: object, brief: true}
	}
}

// setFalse records that something is not so and need not be, or only awaits the next decision.
func (f *finding) setFalse(reason, format string, args ...any) {
	f.setWaiting(reason, "", format, args...)
}

// inherit takes over the reason from another finding, which reports the wait itself.
func (f *finding) inherit(other finding) {
	if !f.warning {
		*f = other
		f.object = ""
	}
}

func (f *finding) setTrue(reason, message string) {
	if f.status == "" {
		*f = finding{status: metav1.ConditionTrue, reason: reason, message: message}
	}
}

func (f *finding) urgent() bool { return f.warning && !f.brief }

func named(kind, name string) string { return kind + " " + name }

func withoutCondition(conditions []spec.Condition, conditionType string) []spec.Condition {
	if spec.FindCondition(conditions, conditionType) == nil {
		return conditions
	}
	return slices.DeleteFunc(slices.Clone(conditions), func(c spec.Condition) bool { return c.Type == conditionType })
}
