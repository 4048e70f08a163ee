package spec

import (
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

// ConditionIsTrue tells whether the condition of the given type is there and
// True.
func ConditionIsTrue(conditions []Condition, conditionType string) bool {
	c := FindCondition(conditions, conditionType)
	return c != nil && c.Status == metav1.ConditionTrue
}

// WithCondition returns the conditions with c in place of the one of its type,
// or at the end. The time of the last transition is taken from c only if the
// status flips, or if there was none: the definition dates those of a new machine
// 1970. If status, reason, message and generation are those that the
// list already has, the result is the list itself. The argument is not changed.
func WithCondition(conditions []Condition, c Condition) []Condition {
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
