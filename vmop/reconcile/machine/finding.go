package machine

import (
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// finding is what was found out about one aspect.
type finding struct {
	status          metav1.ConditionStatus // empty: nothing yet
	reason, message string
	// further is what the event that tells of it says after the message: the message is
	// one line, and commands need more.
	further string
	// object is what is waited for, by its kind and name. It is empty if nothing
	// is, and for a wait that is told of otherwise.
	object string
	// warning: a person may have to do something.
	warning bool
	// brief: it may pass by itself soon, and is told of when it does not.
	brief bool
}

func (f *finding) ok() bool { return f.status == "" || f.status == metav1.ConditionTrue }

// setProblem says that something is not as it should be, which a person may have
// to do something about. It reports whether that is the first problem, which stays.
func (f *finding) setProblem(reason, object, format string, args ...any) bool {
	if f.warning {
		return false
	}
	*f = finding{status: metav1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...), object: object, warning: true}
	return true
}

// setWaiting says that something is not yet as it should be, and will be.
func (f *finding) setWaiting(reason, object, format string, args ...any) {
	if f.status == "" {
		*f = finding{status: metav1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...), object: object, brief: true}
	}
}

// setFalse says that something is not so and need not be, or that nothing but the
// next look is waited for.
func (f *finding) setFalse(reason, format string, args ...any) {
	f.setWaiting(reason, "", format, args...)
}

// inherit takes over why something else is not as it should be, which tells of it.
func (f *finding) inherit(other finding) {
	if !f.warning {
		*f = other
		f.object = ""
	}
}

// setTrue says that all is well, if nothing was found that is not.
func (f *finding) setTrue(reason, message string) {
	if f.status == "" {
		*f = finding{status: metav1.ConditionTrue, reason: reason, message: message}
	}
}

// urgent reports whether the status must say at once what was found.
func (f *finding) urgent() bool { return f.warning && !f.brief }

// named names an object of the machine's namespace.
func named(kind, name string) string { return kind + " " + name }

// withoutCondition are conditions without that of a type; what is given stays.
func withoutCondition(conditions []spec.Condition, conditionType string) []spec.Condition {
	if spec.FindCondition(conditions, conditionType) == nil {
		return conditions
	}
	return slices.DeleteFunc(slices.Clone(conditions), func(c spec.Condition) bool { return c.Type == conditionType })
}
