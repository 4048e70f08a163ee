package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// untold returns a plan of which something failed, so that its events were not emitted.
func untold(p reconcile.Plan) reconcile.Plan {
	p.Events = nil
	return p
}

// reconcile runs the operator once with its observations: it decides and writes, until something
// fails or it is killed. It returns the plan with the emitted events.
func (w *world) reconcile(faults bool) reconcile.Plan {
	s, ok := w.snapshot()
	if !ok || w.behind() {
		return reconcile.Plan{}
	}
	stored := get[*spec.VirtualMachine](w, theVM)
	latest := stored != nil && stored.ResourceVersion == s.VM.ResourceVersion
	p := w.decide(s)
	w.checkPlan(&s, &p)
	if p.DeletesClaims() { // the API server is asked whether it is still wanted
		if w.observeLatest(theVM, theConfig) {
			if s, ok = w.snapshot(); !ok {
				return reconcile.Plan{}
			}
			p = w.decide(s)
			w.checkPlan(&s, &p)
		}
	}
	if p.Releases() || w.named && p.StartsPod() {
		if w.observePods() { // the API server is asked
			s, _ = w.snapshot()
			p = w.decide(s)
			w.checkPlan(&s, &p)
		}
	}
	until := len(p.Actions) + 1
	if faults {
		until = w.choose("killed after", 2*until+2)
	}
	executed := 0
	for _, batch := range reconcile.Batches(p.Actions) {
		failed := false
		for _, a := range w.inAnyOrder(batch, faults) {
			if executed == until {
				w.note("the operator is killed")
				return untold(p)
			}
			executed++
			failed = !w.execute(a, faults) || failed
		}
		if failed {
			return untold(p)
		}
	}
	if until <= len(p.Actions) {
		return untold(p)
	}
	if faults && p.Passing && len(p.Statuses) > 0 && w.choose("hold", 2) == 0 {
		return p
	}
	if !w.writeStatuses(s.VM, p.Statuses, faults) {
		return untold(p)
	}
	for _, e := range p.Events {
		w.told(e, latest)
	}
	return p
}

func (w *world) inAnyOrder(batch []reconcile.Action, draw bool) []reconcile.Action {
	if len(batch) == 1 || !draw {
		return batch
	}
	var out []reconcile.Action
	for rest := slices.Clone(batch); len(rest) > 0; {
		i := w.choose("next", len(rest))
		out, rest = append(out, rest[i]), slices.Delete(rest, i, i+1)
	}
	return out
}

// execute reports whether an action was done.
func (w *world) execute(a reconcile.Action, faults bool) bool {
	r := done
	if w.forbidden[a.Target().Kind] {
		r = refused
	}
	if faults {
		r = []result{done, done, done, done, done, stale, refused, lost, lost}[w.choose("fault", 9)]
	}
	infeasible := false
	if r == done || r == lost && w.choose("effect", 2) == 0 {
		got := w.act(a)
		infeasible = got == refused
		w.wrote(a)
		w.note("%s%s", a.Target(), map[result]string{done: "", stale: ": the snapshot was old", refused: ": the node is too small"}[got])
		if r == done {
			r = got
		}
	} else {
		w.note("%s: fails", a.Target())
	}
	switch r {
	case done:
		delete(w.failures, a.Target())
	case refused:
		w.refuse(a.Target(), infeasible)
	}
	return r == done
}

// writeStatuses reports whether all statuses were written.
func (w *world) writeStatuses(observed *spec.VirtualMachine, statuses []reconcile.StatusApply, faults bool) bool {
	for _, st := range statuses {
		if faults && w.choose("status fault", 5) == 0 {
			return false
		}
		vm := get[*spec.VirtualMachine](w, theVM)
		if vm == nil || vm.UID != observed.UID || st.ResourceVersion != "" && st.ResourceVersion != vm.ResourceVersion {
			return false
		}
		w.applyStatus(vm, st.Manager, st.Status)
		if st.Manager == names.OperatorStatusManager {
			w.noteWaits(vm, observed)
		}
		if st.Manager == names.OperatorStatusManager && vm.Status.LastEnd != nil &&
			(observed.Status.LastEnd == nil || observed.Status.LastEnd.PodUID != vm.Status.LastEnd.PodUID) {
			w.stopNoted = w.decisions
		}
		w.put(theVM, vm)
		w.note("status of %s: %v", st.Manager, st.Status["phase"])
	}
	return true
}

func (w *world) refuse(t reconcile.Target, infeasible bool) {
	f := reconcile.Failure{Target: t, Reason: "Forbidden", Message: "exceeded quota: pods", Count: w.failures[t].Count + 1, Last: w.now}
	if infeasible {
		f.Message, f.Infeasible = `pods "web" is forbidden: node didn't have enough allocatable resources: memory`, true
	}
	w.failures[t] = f
}

func (w *world) podUID() types.UID {
	if pod := get[*corev1.Pod](w, thePod); pod != nil {
		return pod.UID
	}
	return ""
}
