package machinetest

import (
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A stop that takes no more than two seconds is written once: not that it has begun,
// and not that the pod is gone before the runner's last report is observed, which comes
// from another watch.
func TestAShortStopIsToldOnce(t *testing.T) {
	w := running(t, nil)
	w.pass(time.Minute)
	stop := func(s *machine.Snapshot) {
		s.VM = s.VM.DeepCopy()
		s.VM.Spec.VM.State = spec.StateStopped
		s.VM.Generation++
	}
	gone := func(s *machine.Snapshot) {
		stop(s)
		s.Pods = nil
	}
	reported := func(s *machine.Snapshot) {
		gone(s)
		st := &s.VM.Status
		st.CPUs, st.RAM, st.RunnerVersion = 0, nil, ""
		for _, condition := range spec.ConditionTypes() {
			st.Conditions = spec.WithCondition(st.Conditions, spec.Condition{
				Type: condition, Status: metav1.ConditionFalse, Reason: spec.ReasonVMStopped, LastTransitionTime: metav1.NewTime(s.Now),
			})
		}
	}
	for _, c := range []struct {
		what    string
		change  func(*machine.Snapshot)
		passing bool
		phase   any
	}{
		{"the pod is to be deleted", stop, true, nil},
		{"the pod is gone", gone, true, spec.PhaseStopped},
		{"the runner has reported", reported, false, spec.PhaseStopped},
	} {
		p := w.decided(c.change)
		if phase := phaseOf(p); p.Passing != c.passing || phase != c.phase {
			t.Errorf("%s: passing: %v, phase %v, want %v, %v", c.what, p.Passing, phase, c.passing, c.phase)
		}
	}
	// One that is to be started again waits for no report.
	p := w.decided(func(s *machine.Snapshot) {
		gone(s)
		s.VM.Spec.VM.State = spec.StateRunning
	})
	if p.Passing {
		t.Errorf("a machine that should run: %+v", p)
	}
}

func phaseOf(p reconcile.Plan) any {
	for _, s := range p.Statuses {
		if s.Manager == names.OperatorStatusManager {
			return s.Status["phase"]
		}
	}
	return nil
}
