package objects

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// drawnAmounts are any that could be written.
func drawnAmounts(t *rapid.T) Amounts {
	return Amounts{CPUs: rapid.Int64().Draw(t, "cpus"), RAM: rapid.Int64().Draw(t, "ram")}
}

func drawnRequests(t *rapid.T) Requests {
	factor := rapid.OneOf(rapid.Float64Range(0, 1e9), rapid.SampledFrom([]float64{0, 1, 1.05, 16, 1e-9, 1e22, -2}))
	return Requests{
		CPUOvercommit: factor.Draw(t, "CPU overcommit"), RAMOvercommit: factor.Draw(t, "RAM overcommit"), Overhead: rapid.Int64().Draw(t, "overhead"),
		Maximum: drawnAmounts(t), Limited: rapid.Bool().Draw(t, "limited"), CoreFraction: rapid.Int64Range(-1, 101).Draw(t, "core fraction"),
	}
}

// drawnText is JSON of a value, and sometimes something nearly like it.
func drawnText(t *rapid.T, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "changes") {
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		with := rapid.SampledFrom([]string{"0", "00", "9", ".", "-", "+", "e", "1e3", " ", "}", ",", `"`, "x", `,"limited":true`, `,"coreFraction":7`, "null"}).Draw(t, "with")
		end := min(at+rapid.IntRange(0, 3).Draw(t, "without"), len(text))
		text = text[:at] + with + text[end:]
	}
	return text
}

// TestRecordedIsReadAsJSON has what is read without reflection read as encoding/json reads
// it, also where it has nearly the usual form.
func TestRecordedIsReadAsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawnText(t, drawnRequests(t))
		var want Requests
		recorded := json.Unmarshal([]byte(text), &want) == nil && want.CPUOvercommit > 0 && want.RAMOvercommit > 0 &&
			want.Overhead >= 0 && want.CoreFraction >= 0 && want.CoreFraction <= 100
		if !recorded {
			want = Requests{}
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.AnnotationRequests: text}}}
		if got, ok := RecordedRequests(pod); got != want || ok != recorded {
			t.Errorf("%s: %+v, %v; want %+v, %v", text, got, ok, want, recorded)
		}
		text = drawnText(t, drawnAmounts(t))
		var amounts Amounts
		valid := json.Unmarshal([]byte(text), &amounts) == nil
		if !valid {
			amounts = Amounts{}
		}
		if got, ok := ParseAmounts(text); got != amounts || ok != (valid && amounts.CPUs > 0 && amounts.RAM > 0) {
			t.Errorf("%s: %+v, %v; want %+v, %v", text, got, ok, amounts, valid)
		}
	})
}

// TestRecordedHasTheUsualForm has the form that is written be the one that is read fast.
func TestRecordedHasTheUsualForm(t *testing.T) {
	for _, r := range []Requests{
		{CPUOvercommit: 16, RAMOvercommit: 1.25, Overhead: 300 << 20, Maximum: Amounts{4, 8 << 30}},
		{CPUOvercommit: 1, RAMOvercommit: 1.05, Maximum: Amounts{1, 1}, Limited: true},
		{CPUOvercommit: 0.5, RAMOvercommit: 1, Maximum: Amounts{1, 1}, Limited: true, CoreFraction: 20},
		{CPUOvercommit: 2, RAMOvercommit: 1, Maximum: Amounts{1, 1}, CoreFraction: 100},
	} {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, usual := usualRequests(string(data)); !usual || got != r {
			t.Errorf("%s: %v, %+v", data, usual, got)
		}
		if data, err = json.Marshal(r.Maximum); err != nil {
			t.Fatal(err)
		}
		if got, rest, usual := usualAmounts(string(data)); !usual || rest != "" || got != r.Maximum {
			t.Errorf("%s: %v, %+v, %q", data, usual, got, strings.TrimSpace(rest))
		}
	}
}
