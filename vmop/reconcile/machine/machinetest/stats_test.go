package machinetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// statsOf are the statistics that a plan writes.
func statsOf(t interface{ Fatalf(string, ...any) }, p reconcile.Plan) *spec.Stats {
	for _, st := range p.Statuses {
		if st.Manager != names.OperatorStatusManager {
			continue
		}
		s := &spec.Stats{}
		data, err := json.Marshal(st.Status["stats"])
		if err == nil {
			err = json.Unmarshal(data, s)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		return s
	}
	return nil
}

// launched is a machine that waits 40 s for a node, and whose guest executes 15 s after
// that; the operator sees each a while later.
func launched(t *testing.T) (w *world, p reconcile.Plan) {
	t.Helper()
	w = newWorld(func(string, int) int { return 0 }, machine.Decide)
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.CreationTimestamp = metav1.NewTime(w.now)
	w.put(theVM, vm)
	look := func() {
		for range 4 {
			w.observeAll()
			if q := w.reconcile(false); len(q.Statuses) > 0 {
				p = q
			}
			w.controllers()
		}
	}
	look()
	w.pass(40 * time.Second)
	look()
	w.tend(get[*corev1.Pod](w, thePod), goodWay) // a node takes it
	w.pass(12 * time.Second)
	look()
	for range 4 {
		w.tend(get[*corev1.Pod](w, thePod), goodWay)
		w.pass(time.Second)
	}
	look()
	if vm := get[*spec.VirtualMachine](w, theVM); vm.Status.Phase != spec.PhaseRunning {
		t.Fatalf("it is %+v", vm.Status)
	}
	return w, p
}

func TestALaunchIsTimed(t *testing.T) {
	w, p := launched(t)
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(worldBegins.Add(time.Duration(seconds) * time.Second))
	}
	started := at(55)
	want := &spec.Stats{
		PhasesTransitions: []spec.PhaseTransition{
			{Phase: spec.PhasePending, Time: at(0)}, {Phase: spec.PhaseStarting, Time: at(52)}, {Phase: spec.PhaseRunning, Time: at(56)},
		},
		LaunchTimeDuration: &spec.LaunchTimeDuration{WaitingForDependenciesSeconds: new(int64(40)), VirtualMachineStartingSeconds: new(int64(15))},
		LastStartTime:      &started,
	}
	if diff := cmp.Diff(want, statsOf(t, p)); diff != "" {
		t.Error(diff)
	}

	// The agent answers: that alone is no write, and who asks is told all the same.
	w.pass(9 * time.Second)
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Status.Conditions = spec.WithCondition(vm.Status.Conditions, spec.Condition{
		Type: spec.ConditionBooted, Status: metav1.ConditionTrue, Reason: spec.ReasonVMBooted, LastTransitionTime: metav1.NewTime(w.now),
	})
	w.put(theVM, vm)
	w.observeAll()
	if p := w.reconcile(false); len(p.Statuses) > 0 {
		t.Errorf("%+v", p.Statuses)
	}
	if l := machine.LaunchOf(&vm.Status); l == nil || l.GuestOSAgentStartingSeconds == nil || *l.GuestOSAgentStartingSeconds != 10 {
		t.Errorf("%+v", l)
	}
	// It is noted with whatever is written next, and stays when the agent comes anew.
	for range 2 {
		vm = get[*spec.VirtualMachine](w, theVM)
		vm.Generation++
		w.put(theVM, vm)
		w.observeAll()
		if s := statsOf(t, w.reconcile(false)); s == nil || s.LaunchTimeDuration == nil || s.LaunchTimeDuration.GuestOSAgentStartingSeconds == nil || *s.LaunchTimeDuration.GuestOSAgentStartingSeconds != 10 {
			t.Errorf("%+v", s)
		}
		vm = get[*spec.VirtualMachine](w, theVM)
		w.pass(time.Minute)
		spec.FindCondition(vm.Status.Conditions, spec.ConditionBooted).LastTransitionTime.Time = w.now
		w.put(theVM, vm)
	}
}

// An agent that is seen to answer long after the start has answered before, or is no
// part of the start.
func TestALateAgentIsNoPartOfALaunch(t *testing.T) {
	w, _ := launched(t)
	w.pass(time.Hour)
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Generation++
	vm.Status.Conditions = spec.WithCondition(vm.Status.Conditions, spec.Condition{
		Type: spec.ConditionBooted, Status: metav1.ConditionTrue, Reason: spec.ReasonVMBooted, LastTransitionTime: metav1.NewTime(w.now),
	})
	w.put(theVM, vm)
	w.observeAll()
	s := statsOf(t, w.reconcile(false))
	if s == nil || s.LaunchTimeDuration == nil || s.LaunchTimeDuration.GuestOSAgentStartingSeconds != nil {
		t.Errorf("%+v", s)
	}
	if l := machine.LaunchOf(&get[*spec.VirtualMachine](w, theVM).Status); l.GuestOSAgentStartingSeconds != nil {
		t.Errorf("%+v", l)
	}
}

// Whatever times others have written, and whatever the status says: what comes of it is
// bounded, in order, and not about the future.
func TestStatsBelieveNobodyAboutTheFuture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(string, int) int { return 0 }, machine.Decide)
		for range rapid.IntRange(0, 6).Draw(t, "rounds") {
			w.work()
		}
		at := func(what string) metav1.Time {
			return metav1.NewTime(w.now.Add(time.Duration(rapid.IntRange(-5000, 5000).Draw(t, what)) * time.Second))
		}
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.CreationTimestamp = at("made")
		vm.Generation++
		for i := range vm.Status.Conditions {
			vm.Status.Conditions[i].LastTransitionTime = at("condition")
			if rapid.Bool().Draw(t, "is") {
				vm.Status.Conditions[i].Status = metav1.ConditionTrue
			}
		}
		vm.Status.Phase = rapid.SampledFrom(append(phases, "")).Draw(t, "phase")
		if rapid.Bool().Draw(t, "stats") {
			s := &spec.Stats{}
			then := worldBegins.Add(-time.Hour)
			for range rapid.IntRange(0, 12).Draw(t, "phases") {
				then = then.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "later")) * time.Second)
				phase := rapid.SampledFrom(phases).Draw(t, "was")
				if n := len(s.PhasesTransitions); n == 0 || s.PhasesTransitions[n-1].Phase != phase {
					s.PhasesTransitions = append(s.PhasesTransitions, spec.PhaseTransition{Phase: phase, Time: metav1.NewTime(then)})
				}
			}
			if n := len(s.PhasesTransitions); n > 0 {
				vm.Status.Phase = s.PhasesTransitions[n-1].Phase
			}
			if rapid.Bool().Draw(t, "started") {
				began := at("start")
				s.LastStartTime = &began
			}
			vm.Status.Stats = s
		}
		w.put(theVM, vm)
		if pod := get[*corev1.Pod](w, thePod); pod != nil {
			pod.CreationTimestamp = at("pod")
			for i := range pod.Status.Conditions {
				pod.Status.Conditions[i].LastTransitionTime = at("scheduled")
			}
			w.put(thePod, pod)
		}
		w.observeAll()
		s, _ := w.snapshot()
		p := machine.Decide(s)
		got := statsOf(t, p)
		if got == nil || len(got.PhasesTransitions) == 0 {
			return
		}
		if n := len(got.PhasesTransitions); n > spec.MaxPhasesTransitions {
			t.Fatalf("%+v", got)
		}
		for i, tr := range got.PhasesTransitions {
			if tr.Time.After(w.now) || i > 0 && tr.Time.Before(&got.PhasesTransitions[i-1].Time) {
				t.Fatalf("%+v at %v", got, w.now)
			}
		}
		if got.LastStartTime != nil && got.LastStartTime.After(w.now) {
			t.Fatalf("%+v at %v", got, w.now)
		}
		if l := got.LaunchTimeDuration; l != nil {
			for _, n := range []*int64{l.WaitingForDependenciesSeconds, l.VirtualMachineStartingSeconds, l.GuestOSAgentStartingSeconds} {
				if n != nil && (*n < 0 || *n > 20000) {
					t.Fatalf("%+v", l)
				}
			}
		}
		again := vm.DeepCopy()
		again.Status.Stats = got
		again.Status.Phase = got.PhasesTransitions[len(got.PhasesTransitions)-1].Phase
		s.VM = again
		if twice := statsOf(t, machine.Decide(s)); twice != nil && len(twice.PhasesTransitions) > len(got.PhasesTransitions) {
			t.Fatalf("%+v becomes %+v", got, twice)
		}
	})
}
