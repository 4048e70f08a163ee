package machinetest

import (
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reporting is how long a runner may take to report before the status says that its pod runs.
const reporting = 2 * time.Second

// checkStarting verifies that a machine that is known to start is not written once more because
// its pod has just started: the runner's report, which changes the phase, is about to follow. Where
// somebody has to act, each step is told.
func (w *world) checkStarting(s *machine.Snapshot, p *reconcile.Plan, st reconcile.StatusApply) {
	pod := s.Pod()
	if st.Manager != names.OperatorStatusManager || st.Status["phase"] != spec.PhaseStarting || len(p.Events) > 0 ||
		pod == nil || len(pod.Status.ContainerStatuses) == 0 {
		return
	}
	running := pod.Status.ContainerStatuses[0].State.Running
	if running == nil || running.StartedAt.After(w.now) || !w.now.Before(running.StartedAt.Add(reporting)) {
		return
	}
	was, is := s.VM.Status.DeepCopy(), w.statusOf(st.Status)
	news := func(c spec.Condition) bool {
		switch c.Type {
		case spec.ConditionPodReady, spec.ConditionReady:
			return false
		case spec.ConditionConfigurationApplied, spec.ConditionBlockDevicesReady, spec.ConditionProvisioningReady:
			if c.Status == metav1.ConditionFalse {
				return true
			}
		}
		old := spec.FindCondition(was.Conditions, c.Type)
		return old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message
	}
	if is.Phase == was.Phase && is.Created == was.Created && is.Ready == was.Ready && is.ObservedGeneration == was.ObservedGeneration &&
		equality.Semantic.DeepEqual(is.LastEnd, was.LastEnd) && equality.Semantic.DeepEqual(is.Power, was.Power) &&
		equality.Semantic.DeepEqual(is.RestartAwaitingChanges, was.RestartAwaitingChanges) && slices.Equal(is.Claims, was.Claims) &&
		slices.Equal(is.VirtualMachinePods, was.VirtualMachinePods) && equality.Semantic.DeepEqual(is.BlockDeviceRefs, was.BlockDeviceRefs) &&
		!slices.ContainsFunc(is.Conditions, news) {
		w.violated("a start is told once for each phase", "%v after the pod started: %v, after %v", w.now.Sub(running.StartedAt.Time), is.Conditions, was.Conditions)
	}
}
