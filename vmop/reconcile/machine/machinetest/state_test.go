package machinetest

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

// A state that is none, which an API without the definition's list would store, stops
// no machine: only Stopped does.
func TestStateThatIsNone(t *testing.T) {
	for state, stops := range map[spec.MachineState]bool{"running": false, "stopped": false, spec.StateStopped: true, spec.StateRunning: false} {
		s := runningMachine()
		s.VM = s.VM.DeepCopy()
		s.VM.Spec.VM.State = state
		s.VM.Generation++
		stopped := false
		for _, a := range machine.Decide(s).Actions {
			if _, is := a.(reconcile.DeletePod); is {
				stopped = true
			}
		}
		if stopped != stops {
			t.Errorf("state %q: the pod is deleted: %v", state, stopped)
		}
	}
}
