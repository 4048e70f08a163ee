package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"pgregory.net/rapid"
)

// Each refusal that says something else is told once, with what the status would
// have said, and the pauses between two attempts grow.
func TestARefusedStatusIsTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		var before *reconcile.Failure
		var pause time.Duration
		for i := range rapid.IntRange(1, 12).Draw(t, "times") {
			f := reconcile.Failure{Target: reconcile.StatusApply{Kind: names.KindVirtualMachine, Name: "web"}.Target(), Count: i + 1, Last: now,
				Message: rapid.SampledFrom([]string{"spec: Required value", "spec: too large"}).Draw(t, "message")}
			plan := reconcile.Plan{Events: []reconcile.Event{{Note: "the plan's"}}}
			p := reconcile.Unreported(plan, before, f)
			if len(p.Actions)+len(p.Statuses) > 0 {
				t.Fatalf("%+v", p)
			}
			switch told := before == nil || before.Message != f.Message; {
			case told && (len(p.Events) != 2 || p.Events[0].Note != "the plan's" || !strings.HasSuffix(p.Events[1].Note, f.Message)):
				t.Fatalf("%+v", p.Events)
			case !told && len(p.Events) > 0:
				t.Fatalf("told again: %+v", p.Events)
			}
			next := p.Wake.Sub(now)
			if next <= 0 || next < pause || next == pause && pause < 5*time.Minute {
				t.Fatalf("after %v a pause of %v", pause, next)
			}
			pause, now, before = next, p.Wake, &f
		}
		soon := now.Add(time.Millisecond)
		if p := reconcile.Unreported(reconcile.Plan{Wake: soon}, nil, reconcile.Failure{Last: now, Count: 1, Message: fmt.Sprint(now)}); !p.Wake.Equal(soon) {
			t.Errorf("the plan's own time is forgotten: %v", p.Wake)
		}
	})
}
