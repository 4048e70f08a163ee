package machinetest

import (
	"encoding/json"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
)

// checkStats verifies written statistics: the last phase is that of the status, each differs from
// the one before and is no earlier, no time is in the future, and the list is bounded.
func (w *world) checkStats(st reconcile.StatusApply) {
	var s spec.Stats
	data, err := json.Marshal(st.Status["stats"])
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	all := s.PhasesTransitions
	if n := len(all); err != nil || n == 0 || n > spec.MaxPhasesTransitions || all[n-1].Phase != st.Status["phase"] {
		w.violated("the record of phases is true", "%s of a machine that is %v, %v", data, st.Status["phase"], err)
	}
	for i, t := range all {
		if t.Time.After(w.now) || i > 0 && (t.Phase == all[i-1].Phase || t.Time.Before(&all[i-1].Time)) {
			w.violated("the record of phases is true", "%s at %v", data, w.now)
		}
	}
	if s.LastStartTime != nil && s.LastStartTime.After(w.now) {
		w.violated("the record of phases is true", "%s at %v", data, w.now)
	}
	l := s.LaunchTimeDuration
	if l == nil {
		return
	}
	if phase := st.Status["phase"]; phase == spec.PhaseStopped || phase == spec.PhasePending {
		w.violated("the record of phases is true", "%s of a machine that is %s", data, phase)
	}
	for _, n := range []*int64{l.WaitingForDependenciesSeconds, l.VirtualMachineStartingSeconds, l.GuestOSAgentStartingSeconds} {
		if n != nil && (*n < 0 || *n > int64(w.now.Sub(worldBegins)/time.Second)) {
			w.violated("the record of phases is true", "%s at %v", data, w.now)
		}
	}
}
