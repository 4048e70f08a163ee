package spec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/spec"
)

func TestWithConditionKeepsTheTransitionTimeUntilTheStatusFlips(t *testing.T) {
	condition := func(status metav1.ConditionStatus, seconds int64, reason string) spec.Condition {
		return spec.Condition{Type: "Running", Status: status, LastTransitionTime: metav1.Unix(seconds, 0), Reason: reason}
	}
	before := []spec.Condition{{Type: "Booted"}, condition("False", 1, "a")}
	copied := append([]spec.Condition(nil), before...)

	if got := spec.WithCondition(before, condition("False", 2, "a")); !cmp.Equal(got, before) {
		t.Error("an unchanged condition must change nothing")
	}
	for _, test := range []struct{ set, want spec.Condition }{
		{condition("False", 2, "b"), condition("False", 1, "b")},
		{condition("True", 2, "b"), condition("True", 2, "b")},
	} {
		got := spec.WithCondition(before, test.set)
		if diff := cmp.Diff([]spec.Condition{before[0], test.want}, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	if !cmp.Equal(before, copied) {
		t.Error("the argument was changed")
	}
	if got := spec.WithCondition(nil, condition("True", 1, "a")); len(got) != 1 || !spec.ConditionIsTrue(got, "Running") {
		t.Errorf("got %v", got)
	}
	// The two types are convertible, so that helpers for the other one serve.
	_ = metav1.Condition(before[0])
}
