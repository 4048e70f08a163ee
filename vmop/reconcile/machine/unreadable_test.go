package machine_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// Whatever is stored, one plan says what cannot be understood, keeps what else
// the operator has said, and is followed by an empty one.
func TestUnreadableIsToldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := map[string]any{}
		for _, field := range []string{"phase", "nodeName", "blockDeviceRefs", "stats", "cpus"} {
			if rapid.Bool().Draw(t, field) {
				stored[field] = field
			}
		}
		flip := true
		var conditions []any
		for _, name := range slices.Concat(spec.OperatorConditionTypes(), []string{spec.ConditionRunning}) {
			state := rapid.SampledFrom([]string{"", "True", "False"}).Draw(t, name)
			if state == "" {
				continue
			}
			if name == spec.ConditionConfigurationApplied {
				flip = state != "False"
			}
			conditions = append(conditions, map[string]any{"type": name, "status": state, "message": "as it was", "lastTransitionTime": "2001-01-01T00:00:00Z"})
		}
		if rapid.Bool().Draw(t, "nonsense") {
			conditions = append(conditions, "nonsense")
		}
		if conditions != nil {
			stored["conditions"] = conditions
		}
		now := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
		p := machine.Unreadable(&metav1.ObjectMeta{Generation: 7}, stored, errors.New("spec.affinity: too large"), now)
		if len(p.Actions) > 0 || len(p.Statuses) != 1 || len(p.Events) != 1 {
			t.Fatalf("%+v", p)
		}
		part := p.Statuses[0].Status
		for _, field := range []string{"phase", "nodeName", "blockDeviceRefs", "stats"} {
			if part[field] != stored[field] {
				t.Errorf("%s: %v of %v", field, part, stored)
			}
		}
		if part["cpus"] != nil {
			t.Errorf("what is the runner's: %v of %v", part, stored)
		}
		kept := map[string]any{}
		for _, c := range part["conditions"].([]any) {
			kept[c.(map[string]any)["type"].(string)] = c
		}
		want := map[string]any{}
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] != spec.ConditionRunning {
				want[c["type"].(string)] = c
			}
		}
		since := "2001-01-01T00:00:00Z"
		if flip {
			since = "2030-01-02T03:04:05Z"
		}
		want[spec.ConditionConfigurationApplied] = map[string]any{
			"type": spec.ConditionConfigurationApplied, "status": "False", "reason": spec.ReasonInvalidSpecification,
			"message":            "spec.affinity: too large; nothing is changed until this is corrected",
			"observedGeneration": int64(7), "lastTransitionTime": since,
		}
		if diff := cmp.Diff(want, kept); diff != "" {
			t.Error(diff)
		}
		next := maps.Clone(stored)
		maps.Copy(next, part)
		if p := machine.Unreadable(&metav1.ObjectMeta{Generation: 8}, next, errors.New("spec.affinity: too large"), now.Add(time.Hour)); len(p.Statuses)+len(p.Events) > 0 {
			t.Errorf("told again: %+v", p)
		}
	})
}
