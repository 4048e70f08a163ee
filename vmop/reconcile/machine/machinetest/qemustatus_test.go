package machinetest

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/runnerconfig"
	corev1 "k8s.io/api/core/v1"
)

// How QEMU ended is in the status, as the runner has told; what is too long for it is
// no status of a process.
func TestQEMUStatusOfAnEnd(t *testing.T) {
	for told, want := range map[string]any{"exit status 1": "exit status 1", "signal: killed": "signal: killed", "": nil, strings.Repeat("x", 65): nil} {
		w := newWorld(func(string, int) int { return 0 }, machine.Decide)
		for range 3 {
			w.work()
		}
		pod := get[*corev1.Pod](w, thePod)
		w.finish(pod, runnerconfig.CauseQEMUFailure)
		pod = get[*corev1.Pod](w, thePod)
		pod.Status.ContainerStatuses[0].State.Terminated.Message = string(runnerconfig.Outcome{Cause: runnerconfig.CauseQEMUFailure, Message: "QEMU ended", QEMUStatus: told}.TerminationMessage())
		w.put(thePod, pod)
		w.observeAll()
		s, _ := w.snapshot()
		found := false
		for _, st := range machine.Decide(s).Statuses {
			if end, is := st.Status["lastEnd"].(map[string]any); is && st.Manager == names.OperatorStatusManager {
				found = true
				if end["qemuStatus"] != want {
					t.Errorf("%q is told as %v", told, end)
				}
			}
		}
		if !found {
			t.Errorf("%q: the end is not told", told)
		}
	}
}
