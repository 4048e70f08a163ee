package operationtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Which operations are for which run policies and phases: the table of Deckhouse.
func TestWhatIsApplicable(t *testing.T) {
	byHand := []spec.RunPolicy{"", spec.RunPolicyManual, spec.RunPolicyAlwaysOnUnlessStoppedManually}
	for _, kind := range []struct {
		name     spec.OperationType
		force    bool
		policies []spec.RunPolicy
		phases   []string
	}{
		{spec.OperationStart, false, byHand, []string{spec.PhaseStopped, spec.PhaseStopping}},
		{spec.OperationStop, false, byHand, []string{spec.PhaseRunning, spec.PhaseStarting, spec.PhasePaused, spec.PhaseDegraded, spec.PhasePending, spec.PhaseUnknown}},
		{spec.OperationStop, true, byHand, []string{spec.PhaseRunning, spec.PhaseStarting, spec.PhasePaused, spec.PhaseDegraded, spec.PhasePending, spec.PhaseUnknown, spec.PhaseStopping}},
		{spec.OperationRestart, false, append(slices.Clone(byHand), spec.RunPolicyAlwaysOn), []string{spec.PhaseRunning, spec.PhaseStarting, spec.PhasePaused, spec.PhaseDegraded}},
		{spec.OperationRestart, true, append(slices.Clone(byHand), spec.RunPolicyAlwaysOn), []string{spec.PhaseRunning, spec.PhaseStarting, spec.PhasePaused, spec.PhaseDegraded, spec.PhaseStopping}},
		{name: spec.OperationEvict}, {name: spec.OperationMigrate}, {name: spec.OperationSuspend}, {name: spec.OperationResume},
	} {
		for _, policy := range policies {
			for _, phase := range []string{spec.PhasePending, spec.PhaseStarting, spec.PhaseRunning, spec.PhasePaused, spec.PhaseDegraded, spec.PhaseStopping, spec.PhaseStopped, spec.PhaseTerminating, spec.PhaseUnknown} {
				w := newWorld()
				w.settled("a", policy, phase)
				w.addOperation("x", "a", kind.name, kind.force)
				w.run("a")
				o := w.truth.ops["x"]
				want := ""
				switch {
				case kind.policies == nil:
					want = conditions.ReasonTypeNotSupported
				case !slices.Contains(kind.policies, policy):
					want = conditions.ReasonNotApplicableForRunPolicy
				case !slices.Contains(kind.phases, phase):
					want = conditions.ReasonNotApplicableForPhase
				}
				c := spec.FindCondition(o.Status.Conditions, conditions.Completed)
				what := fmt.Sprintf("%s (force %t) of a machine that is %s, run policy %q", kind.name, kind.force, phase, policy)
				switch {
				case want == "" && (o.Status.Phase != spec.OperationInProgress || w.signals[o.UID] != 1):
					t.Errorf("%s: %s, %+v; told %d times", what, o.Status.Phase, c, w.signals[o.UID])
				case want != "" && (o.Status.Phase != spec.OperationFailed || c.Reason != want || c.Status != metav1.ConditionFalse || w.signals[o.UID] != 0 || len(o.Finalizers) != 0):
					t.Errorf("%s: %s, %+v, want %s; told %d times", what, o.Status.Phase, c, want, w.signals[o.UID])
				}
			}
		}
	}
}

// run lets the operator do all that it wants to do now.
func (w *world) run(name string) {
	for range 20 {
		w.see(3)
		if len(w.reconcile(name, -1).Actions) == 0 {
			return
		}
	}
	w.Violated("the world comes to rest", "there is no end of writes")
}

// Who takes whose place: a start gives way to a stop, and what waits for a guest to
// what does not.
func TestSupersede(t *testing.T) {
	type form struct {
		kind  spec.OperationType
		force bool
	}
	forms := []form{{spec.OperationStart, false}, {spec.OperationStop, false}, {spec.OperationStop, true}, {spec.OperationRestart, false}, {spec.OperationRestart, true}}
	for _, first := range forms {
		for _, second := range forms {
			w := newWorld()
			phase := spec.PhaseRunning
			if first.kind == spec.OperationStart {
				phase = spec.PhaseStopped
			}
			w.settled("a", spec.RunPolicyManual, phase)
			w.addOperation("x", "a", first.kind, first.force)
			w.run("a")
			w.Now = w.Now.Add(time.Second)
			w.addOperation("y", "a", second.kind, second.force)
			w.run("a")
			x, y := w.truth.ops["x"], w.truth.ops["y"]
			takes := first.kind == spec.OperationStart && second.kind == spec.OperationStop || first.kind != spec.OperationStart && !first.force && second.force
			switch {
			case takes && (x.Status.Phase != spec.OperationSuperseded || !spec.ConditionIsTrue(x.Status.Conditions, conditions.Completed) || y.Status.Phase != spec.OperationInProgress || w.signals[y.UID] != 1):
				t.Errorf("%v then %v: %s, %s (%s)", first, second, x.Status.Phase, y.Status.Phase, reasonOf(y))
			case !takes && (x.Status.Phase != spec.OperationInProgress || y.Status.Phase != spec.OperationFailed || w.signals[y.UID] != 0):
				t.Errorf("%v then %v: %s, %s (%s)", first, second, x.Status.Phase, y.Status.Phase, reasonOf(y))
			}
			if request := w.truth.vms["a"].Annotations[names.AnnotationPowerRequest]; takes && request != y.Status.Request {
				t.Errorf("%v then %v: the machine has request %q", first, second, request)
			}
		}
	}
}

// An operation that could not be refused in time does not undo what a later one has done.
func TestOvertakenOperation(t *testing.T) {
	for _, tt := range []struct {
		created time.Duration
		phase   spec.OperationPhase
	}{{-time.Second, spec.OperationFailed}, {0, spec.OperationInProgress}, {time.Second, spec.OperationInProgress}} {
		w := newWorld()
		w.settled("a", spec.RunPolicyManual, spec.PhaseStopped)
		w.addOperation("y", "a", spec.OperationStop, false)
		y, now := w.truth.ops["y"], metav1.NewTime(w.Now)
		y.Status.Phase, y.Status.StartTime, y.Status.CompletionTime = spec.OperationCompleted, &now, &now
		w.addOperation("x", "a", spec.OperationStart, false)
		x := w.truth.ops["x"]
		x.CreationTimestamp.Time = y.CreationTimestamp.Add(tt.created)
		w.run("a")
		if x = w.truth.ops["x"]; x.Status.Phase != tt.phase || (w.signals[x.UID] == 1) != (tt.phase == spec.OperationInProgress) {
			t.Errorf("created after %v: %s (%s), told %d times", tt.created, x.Status.Phase, reasonOf(x), w.signals[x.UID])
		}
	}
}

// What a machine does with each operation, up to the end.
func TestOperationsAreCarriedOut(t *testing.T) {
	for _, policy := range []spec.RunPolicy{"", spec.RunPolicyManual} {
		for _, s := range []struct {
			kind  spec.OperationType
			phase string
			want  string
		}{
			{spec.OperationStart, spec.PhaseStopped, spec.PhaseRunning},
			{spec.OperationStop, spec.PhaseRunning, spec.PhaseStopped},
			{spec.OperationStop, spec.PhasePending, spec.PhaseStopped},
			{spec.OperationRestart, spec.PhaseRunning, spec.PhaseRunning},
		} {
			w := newWorld()
			w.settled("a", policy, s.phase)
			if s.phase == spec.PhasePending {
				delete(w.truth.pods, "a")
			}
			w.addOperation("x", "a", s.kind, false)
			for range 12 {
				w.run("a")
				if w.truth.ops["x"].Status.Phase.Finished() {
					break
				}
				w.proceeds("a")
			}
			vm, o := w.truth.vms["a"], w.truth.ops["x"]
			if o.Status.Phase != spec.OperationCompleted || vm.Status.Phase != s.want || len(o.Finalizers) > 0 || !spec.ConditionIsTrue(o.Status.Conditions, conditions.SignalSent) {
				t.Errorf("%s of a %s machine, policy %q: %s, machine %s\n%s", s.kind, s.phase, policy, o.Status.Phase, vm.Status.Phase, strings.Join(w.Log, "\n"))
			}
		}
	}
}

// A status that is about the former pod, and one from before the request, are no proof.
func TestOldStatusProvesNothing(t *testing.T) {
	w := newWorld()
	w.settled("a", spec.RunPolicyManual, spec.PhaseRunning)
	w.addOperation("x", "a", spec.OperationRestart, false)
	w.run("a")
	request := w.truth.ops["x"].Status.Request
	w.truth.pods["a"] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "new", Annotations: map[string]string{names.AnnotationPowerRequest: request}}}
	w.see(3)
	s := w.snapshot("a")
	if !operation.NeedsFresh(s) || !s.Fresh {
		t.Error("the machine is not read anew")
	}
	if s.Fresh = false; len(operation.Decide(s).Actions) > 0 {
		t.Errorf("it is done: %+v", operation.Decide(s))
	}
	if s.Fresh = true; len(operation.Decide(s).Actions) == 0 {
		t.Error("it is not done")
	}

	// The stop is not done because the machine has not started yet that was to.
	w = newWorld()
	w.settled("a", spec.RunPolicyManual, spec.PhaseStopped)
	w.addOperation("x", "a", spec.OperationStart, false)
	w.run("a")
	w.Now = w.Now.Add(time.Second)
	w.addOperation("y", "a", spec.OperationStop, false)
	w.run("a")
	if y := w.truth.ops["y"]; y.Status.Phase != spec.OperationInProgress {
		t.Errorf("%s: %s", y.Status.Phase, reasonOf(y))
	}
	w.proceeds("a")
	w.run("a")
	if y := w.truth.ops["y"]; y.Status.Phase != spec.OperationCompleted {
		t.Errorf("%s: %s", y.Status.Phase, reasonOf(y))
	}
}

// A machine that takes the name of another one is none of its operations' business.
func TestAnotherMachineOfTheName(t *testing.T) {
	w := newWorld()
	w.settled("a", spec.RunPolicyManual, spec.PhaseRunning)
	w.addOperation("x", "a", spec.OperationStop, false)
	w.run("a")
	w.settled("a", spec.RunPolicyManual, spec.PhaseStopped)
	w.run("a")
	o := w.truth.ops["x"]
	if o.Status.Phase != spec.OperationFailed || !strings.HasPrefix(reasonOf(o), conditions.ReasonVirtualMachineNotFound) {
		t.Errorf("%s: %s", o.Status.Phase, reasonOf(o))
	}
}

// A restart that could not begin in its time does not begin later.
func TestLateRestartIsTakenBack(t *testing.T) {
	w := newWorld()
	w.settled("a", "", spec.PhaseRunning)
	o := w.addOperation("x", "a", spec.OperationRestart, false)
	w.run("a")
	start := w.Now
	if deadline := w.truth.ops["x"].Status.Deadline; deadline.Sub(start) != 10*time.Minute+30*time.Second+150*time.Second {
		t.Errorf("deadline after %v", deadline.Sub(start))
	}
	w.Now = w.truth.ops["x"].Status.Deadline.Time
	w.run("a")
	if _, has := w.truth.vms["a"].Annotations[names.AnnotationPowerRequest]; has || w.truth.ops["x"].Status.Phase != spec.OperationFailed || w.signals[o.UID] != 1 {
		t.Errorf("%+v, %s", w.truth.vms["a"].Annotations, reasonOf(w.truth.ops["x"]))
	}
}

// A machine that the API server does not let be told is told of as such, and tried
// again until the time is over.
func TestRefusedSignal(t *testing.T) {
	w := newWorld()
	w.settled("a", spec.RunPolicyManual, spec.PhaseRunning)
	w.addOperation("x", "a", spec.OperationStop, true)
	w.run("a") // up to the first write
	w.truth.ops["x"].Status.Conditions = nil
	w.update("a", func(vm *spec.VirtualMachine) { vm.Annotations = nil })
	w.see(3)
	s := w.snapshot("a")
	refused := reconcile.Failure{Target: reconcile.Target{Verb: "patch", Kind: names.KindVirtualMachine, Name: "a"}, Reason: "Forbidden", Message: "a policy forbids it", Count: 1, Last: w.Now}
	s.Failures = []reconcile.Failure{refused}
	plan := operation.Decide(s)
	if len(plan.Actions) != 1 || !strings.Contains(fmt.Sprint(plan.Actions), "a policy forbids it") || !plan.Wake.Equal(refused.RetryAt()) {
		t.Errorf("%+v", plan)
	}
	s.Now = s.Now.Add(time.Minute)
	if plan = operation.Decide(s); len(plan.Actions) != 2 {
		t.Errorf("%+v", plan)
	}
}
