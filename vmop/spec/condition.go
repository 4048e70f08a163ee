package spec

import (
	"slices"

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
	return WithConditions(conditions, c)
}

// WithConditions is [WithCondition] for one after the other, and copies the list once.
func WithConditions(conditions []Condition, all ...Condition) []Condition {
	out, copied := conditions, false
	for _, c := range all {
		c.Message = BoundedMessage(c.Message)
		i := slices.IndexFunc(out, func(old Condition) bool { return old.Type == c.Type })
		if i >= 0 {
			old := &out[i]
			if old.Status == c.Status && old.LastTransitionTime.Unix() > 0 {
				c.LastTransitionTime = old.LastTransitionTime
			}
			if *old == c {
				continue
			}
		}
		if !copied {
			out, copied = append(make([]Condition, 0, len(conditions)+len(all)), conditions...), true
		}
		if i >= 0 {
			out[i] = c
		} else {
			out = append(out, c)
		}
	}
	return out
}

// BoundedMessage is a message that the definition takes; see [conditions.Bounded].
func BoundedMessage(message string) string { return conditions.Bounded(message) }
