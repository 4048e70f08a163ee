package spec

import (
	"github.com/vmop/sdk/vmop/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FindCondition returns the condition of the given type, or nil.
func FindCondition(conditions []Condition, conditionType string) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// ConditionIsTrue reports whether the condition of the given type is there and
// True.
func ConditionIsTrue(conditions []Condition, conditionType string) bool {
	c := FindCondition(conditions, conditionType)
	return c != nil && c.Status == metav1.ConditionTrue
}

// WithCondition returns the conditions with c in place of the one of its type,
// or at the end. The time of the last transition is taken from c only if the
// status flips, or if there was none: the definition dates those of a new machine
// 1970. If status, reason, message and generation are those that the
// list already has, the result is the list itself. The argument is not changed. A
// message that is too long for the definition is cut.
func WithCondition(conditions []Condition, c Condition) []Condition {
	c.Message = BoundedMessage(c.Message)
	for i := range conditions {
		old := &conditions[i]
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status && old.LastTransitionTime.Unix() > 0 {
			c.LastTransitionTime = old.LastTransitionTime
		}
		if *old == c {
			return conditions
		}
		out := append([]Condition(nil), conditions...)
		out[i] = c
		return out
	}
	return append(append([]Condition(nil), conditions...), c)
}

// BoundedMessage is a message that the definition takes; see [conditions.Bounded].
func BoundedMessage(message string) string { return conditions.Bounded(message) }
