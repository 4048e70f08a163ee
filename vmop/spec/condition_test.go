package spec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

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

func TestSeveralConditionsAreOneAfterTheOther(t *testing.T) {
	condition := rapid.Custom(func(t *rapid.T) spec.Condition {
		return spec.Condition{
			Type: rapid.SampledFrom([]string{"Running", "Booted", "Ready"}).Draw(t, "type"), Status: rapid.SampledFrom([]metav1.ConditionStatus{"True", "False"}).Draw(t, "status"),
			Reason: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "reason"), LastTransitionTime: metav1.Unix(rapid.Int64Range(0, 2).Draw(t, "time"), 0),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfNDistinct(condition, 0, 3, func(c spec.Condition) string { return c.Type }).Draw(t, "before")
		all := rapid.SliceOfN(condition, 0, 5).Draw(t, "all")
		kept, want := append([]spec.Condition(nil), before...), before
		for _, c := range all {
			want = spec.WithCondition(want, c)
		}
		got := spec.WithConditions(before, all...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-one after the other +together)\n%s", diff)
		}
		if diff := cmp.Diff(kept, append([]spec.Condition(nil), before...)); diff != "" {
			t.Fatalf("the argument was changed\n%s", diff)
		}
		if changed := !cmp.Equal(kept, append([]spec.Condition(nil), got...)); len(got) > 0 && !changed && len(all) < 2 && &got[0] != &before[0] {
			t.Fatal("what is as it was is not the list itself")
		}
	})
}
