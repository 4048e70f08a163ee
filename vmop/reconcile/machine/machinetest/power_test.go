package machinetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// comesToRest lets everybody do what there is to do, kindly.
func (w *world) comesToRest() {
	quiet := 0
	for range 60 {
		w.observeAll()
		p, before := w.reconcile(false), w.serial
		w.check()
		w.controllers()
		for _, k := range w.keys("pod/") {
			pod := get[*corev1.Pod](w, k)
			if pod == nil {
				continue
			}
			g := w.guests[pod.UID]
			if w.tend(pod, goodWay); g != nil && (g.stage < 2 || !g.told) {
				g.stage = 2
				w.runnerReports(g)
			}
		}
		if w.serial != before || len(p.Actions)+len(p.Statuses) > 0 || p.Wake.After(w.now) {
			if quiet = 0; p.Wake.After(w.now) {
				w.pass(p.Wake.Sub(w.now))
			}
			continue
		}
		if quiet++; quiet == 2 {
			w.checkPower(get[*spec.VirtualMachine](w, theVM))
			return
		}
	}
	w.violated("the world comes to rest", "it does not")
}

// policyWorld is a machine with a run policy, which runs or not, whatever the policy.
func policyWorld(policy spec.RunPolicy, runs bool) *world {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	w.policies = true
	w.setPolicy(policy)
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.State = spec.StateStopped // counts for nothing
	w.put(theVM, vm)
	w.comesToRest()
	if manual(policy) && runs != w.runs() {
		w.askFor(get[*spec.VirtualMachine](w, theVM), map[bool]machine.Verb{true: machine.VerbStart, false: machine.VerbStop}[runs])
		w.comesToRest()
	}
	w.pass(2 * time.Hour)
	return w
}

func (w *world) setPolicy(policy spec.RunPolicy) {
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.RunPolicy = policy
	vm.Generation++
	w.upsets++
	w.put(theVM, vm)
}

// runs reports whether there is a guest that executes, and that this is said.
func (w *world) runs() bool {
	vm, pod := get[*spec.VirtualMachine](w, theVM), get[*corev1.Pod](w, thePod)
	runs := pod != nil && w.guests[pod.UID] != nil
	if want := map[bool]string{true: spec.PhaseRunning, false: spec.PhaseStopped}[runs]; vm.Status.Phase != want || vm.ShouldRun() != runs {
		w.violated("the status is true", "phase %s of a machine that runs: %v; %+v", vm.Status.Phase, runs, vm.Status.Power)
	}
	return runs
}

// TestRunPolicies is the table of what each policy makes of what happens.
func TestRunPolicies(t *testing.T) {
	const (
		newPod  = "new pod"
		same    = "same pod"
		stopped = "stopped"
	)
	ends := func(cause runnerconfig.Cause) func(*world) {
		return func(w *world) { w.finish(get[*corev1.Pod](w, thePod), cause) }
	}
	// lost is an end while no operator is there, whose pod somebody deletes.
	lost := func(cause runnerconfig.Cause) func(*world) {
		return func(w *world) {
			w.choose = func(string, int) int { return 1 } // the runner's report gets through
			w.finish(get[*corev1.Pod](w, thePod), cause)
			w.choose = func(string, int) int { return 0 }
			clear(w.lastEnds)
			w.upsets++
			w.deletePod(get[*corev1.Pod](w, thePod), 30)
		}
	}
	asks := func(v machine.Verb) func(*world) {
		return func(w *world) { w.askFor(get[*spec.VirtualMachine](w, theVM), v) }
	}
	deleted := func(w *world) {
		w.upsets++
		w.deletePod(get[*corev1.Pod](w, thePod), 30)
	}
	vanished := func(w *world) {
		w.upsets++
		delete(w.guests, w.podUID())
		w.put(thePod, nil)
	}
	order := []spec.RunPolicy{spec.RunPolicyAlwaysOn, spec.RunPolicyAlwaysOnUnlessStoppedManually, spec.RunPolicyManual, spec.RunPolicyAlwaysOff}
	for _, row := range []struct {
		event   string
		runs    bool
		happens func(*world)
		want    [4]string // in the order of the reference; "" for what cannot be
	}{
		{event: "created", happens: func(*world) {}, want: [4]string{"", "", stopped, stopped}},
		{event: "created to run", runs: true, happens: func(*world) {}, want: [4]string{same, same, same, ""}},
		{event: "guest reboot that applies changes", runs: true, happens: ends(runnerconfig.CauseGuestReset), want: [4]string{newPod, newPod, newPod, ""}},
		{event: "guest reboot that applies changes, pod lost", runs: true, happens: lost(runnerconfig.CauseGuestReset), want: [4]string{newPod, newPod, newPod, ""}},
		{event: "guest power-off", runs: true, happens: ends(runnerconfig.CauseGuestShutdown), want: [4]string{newPod, stopped, stopped, ""}},
		{event: "guest power-off, pod lost", runs: true, happens: lost(runnerconfig.CauseGuestShutdown), want: [4]string{newPod, stopped, stopped, ""}},
		{event: "crash", runs: true, happens: ends(runnerconfig.CauseQEMUFailure), want: [4]string{newPod, newPod, stopped, ""}},
		{event: "crash, pod lost", runs: true, happens: lost(runnerconfig.CauseQEMUFailure), want: [4]string{newPod, newPod, stopped, ""}},
		{event: "pod deleted", runs: true, happens: deleted, want: [4]string{newPod, newPod, stopped, ""}},
		{event: "pod vanished", runs: true, happens: vanished, want: [4]string{newPod, newPod, stopped, ""}},
		{event: "stop", runs: true, happens: asks(machine.VerbStop), want: [4]string{same, stopped, stopped, ""}},
		{event: "stop of a stopped one", happens: asks(machine.VerbStop), want: [4]string{"", stopped, stopped, stopped}},
		{event: "start", happens: asks(machine.VerbStart), want: [4]string{"", newPod, newPod, stopped}},
		{event: "start of a running one", runs: true, happens: asks(machine.VerbStart), want: [4]string{same, same, same, ""}},
		{event: "restart", runs: true, happens: asks(machine.VerbRestart), want: [4]string{newPod, newPod, newPod, ""}},
		{event: "restart of a stopped one", happens: asks(machine.VerbRestart), want: [4]string{"", stopped, stopped, stopped}},
		{event: "nonsense", runs: true, happens: asks("nonsense"), want: [4]string{same, same, same, ""}},
	} {
		for i, policy := range order {
			if row.want[i] == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", row.event, policy), func(t *testing.T) {
				var w *world
				err := (&world{}).guarded(func() {
					w = policyWorld(policy, row.runs)
					if w.runs() != row.runs {
						t.Fatalf("it runs: %v", !row.runs)
					}
					before := w.podUID()
					row.happens(w)
					w.comesToRest()
					got := stopped
					if w.runs() {
						if got = newPod; w.podUID() == before {
							got = same
						}
					}
					if got != row.want[i] {
						t.Errorf("%s, want %s\n%s", got, row.want[i], strings.Join(w.log, "\n"))
					}
				})
				if err != nil {
					t.Errorf("%v\n%s", err, strings.Join(w.log, "\n"))
				}
			})
		}
	}
}

// TestRunPolicyChanges is what becomes of a machine that gets another policy: it is
// started or stopped only where the policies say so.
func TestRunPolicyChanges(t *testing.T) {
	const none = spec.RunPolicy("")
	all := append([]spec.RunPolicy{none}, runPolicies...)
	for _, from := range all {
		for _, to := range runPolicies {
			for _, runs := range []bool{true, false} {
				if from == to || from == spec.RunPolicyAlwaysOn && !runs || from == spec.RunPolicyAlwaysOff && runs {
					continue
				}
				want := runs && to != spec.RunPolicyAlwaysOff
				switch to {
				case spec.RunPolicyAlwaysOn:
					want = true
				case spec.RunPolicyAlwaysOnUnlessStoppedManually:
					want = runs || from == spec.RunPolicyAlwaysOff
				}
				t.Run(fmt.Sprintf("%s to %s, running: %v", from, to, runs), func(t *testing.T) {
					w := policyWorld(from, runs)
					if from == none {
						vm := get[*spec.VirtualMachine](w, theVM)
						vm.Spec.VM.State = map[bool]spec.MachineState{true: spec.StateRunning, false: spec.StateStopped}[runs]
						vm.Generation++
						w.put(theVM, vm)
						w.comesToRest()
					}
					before := w.podUID()
					w.setPolicy(to)
					if err := w.guarded(w.comesToRest); err != nil {
						t.Fatalf("%v\n%s", err, strings.Join(w.log, "\n"))
					}
					if got := w.runs(); got != want {
						t.Errorf("it runs: %v, want %v", got, want)
					}
					if runs && want && w.podUID() != before {
						t.Error("its pod was replaced")
					}
				})
			}
		}
	}
}

// TestRequestIsForgottenNever is a request that was answered before the machine had
// no policy for a while: it is not carried out again.
func TestRequestIsForgottenNever(t *testing.T) {
	w := policyWorld(spec.RunPolicyManual, false)
	w.askFor(get[*spec.VirtualMachine](w, theVM), machine.VerbStart)
	w.comesToRest()
	w.setPolicy("")
	w.comesToRest()
	if w.runs() {
		t.Fatal("spec.vm.state is Stopped")
	}
	w.setPolicy(spec.RunPolicyManual)
	w.comesToRest()
	if w.runs() {
		t.Error("it was started by an old request")
	}
}

// TestStartIsNotDelayed is somebody who starts a machine whose start has failed, by a
// policy that leaves that to people.
func TestStartIsNotDelayed(t *testing.T) {
	w := policyWorld(spec.RunPolicyManual, true)
	w.finish(get[*corev1.Pod](w, thePod), runnerconfig.CauseStartFailure)
	w.comesToRest()
	w.pass(time.Second)
	at := w.now
	w.askFor(get[*spec.VirtualMachine](w, theVM), machine.VerbStart)
	w.observeAll()
	for range 3 {
		w.reconcile(false)
		w.observeAll()
	}
	if w.podUID() == "" || w.now.After(at) {
		t.Errorf("there is no pod: %+v", get[*spec.VirtualMachine](w, theVM).Status.LastEnd)
	}
}

// TestAutomaticRestart is a change that needs nobody's approval: it restarts the
// machine once, and not while a next pod would lack something.
func TestAutomaticRestart(t *testing.T) {
	for _, policy := range append([]spec.RunPolicy{""}, runPolicies...) {
		if policy == spec.RunPolicyAlwaysOff {
			continue
		}
		t.Run(string(policy), func(t *testing.T) {
			w := policyWorld(policy, true)
			vm := get[*spec.VirtualMachine](w, theVM)
			vm.Spec.VM.State = spec.StateRunning
			vm.Generation++
			w.put(theVM, vm)
			w.comesToRest()
			first := w.podUID()
			vm = get[*spec.VirtualMachine](w, theVM)
			vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
			vm.Spec.VM.MaximumCPUs = new(int32(4))
			vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "later"}})
			vm.Generation++
			w.put(theVM, vm)
			for range 4 {
				w.observeAll()
				w.reconcile(false)
			}
			if w.podUID() != first || get[*corev1.Pod](w, thePod).DeletionTimestamp != nil {
				t.Fatal("it is restarted though a claim is missing")
			}
			w.put("claim/later", get[*corev1.PersistentVolumeClaim](w, "claim/web-system-disk"))
			claim := get[*corev1.PersistentVolumeClaim](w, "claim/later")
			claim.Name, claim.UID, claim.Labels = "later", "", nil
			w.put("claim/later", claim)
			if err := w.guarded(w.comesToRest); err != nil {
				t.Fatalf("%v\n%s", err, strings.Join(w.log, "\n"))
			}
			second := w.podUID()
			if second == first || !w.runs() || len(get[*spec.VirtualMachine](w, theVM).Status.RestartAwaitingChanges) > 0 {
				t.Fatalf("it was not restarted\n%s", strings.Join(w.log, "\n"))
			}
			w.pass(time.Hour)
			if w.comesToRest(); w.podUID() != second {
				t.Error("it is restarted again")
			}
		})
	}
}

// A machine that crashes is started again after a delay that grows, also if each of its
// pods is taken away when it has ended, and at once if it has not failed by its runner's
// word.
func TestPromisesOfLostPods(t *testing.T) {
	causes := []runnerconfig.Cause{
		runnerconfig.CauseQEMUFailure, runnerconfig.CauseGuestShutdown, runnerconfig.CauseGuestReset, runnerconfig.CauseHostQuit, "of-a-later-version",
	}
	rapid.Check(t, func(t *rapid.T) {
		w := policyWorld(spec.RunPolicyAlwaysOn, true)
		row := int32(0)
		for i := range rapid.IntRange(1, 7).Draw(t, "ends") {
			cause := rapid.SampledFrom(causes).Draw(t, "cause")
			ran := rapid.SampledFrom([]time.Duration{2 * time.Minute, 20 * time.Minute}).Draw(t, "ran")
			w.pass(ran)
			pod := get[*corev1.Pod](w, thePod)
			w.choose = func(string, int) int { return 1 } // the runner's report gets through
			w.finish(pod, cause)
			w.choose = func(string, int) int { return 0 }
			clear(w.lastEnds)
			w.upsets++
			w.put(thePod, nil)
			if ran > 10*time.Minute || !cause.Failure() {
				row = 0
			}
			if cause.Failure() {
				row++
			}
			ended := w.now
			for range 1000 {
				w.observeAll()
				w.work()
				if w.podUID() != "" {
					break
				}
				w.pass(time.Second)
			}
			wait, want := w.now.Sub(ended), reconcile.Backoff(10*time.Second, int(row))
			if wait < want-time.Second || wait > want+15*time.Second {
				t.Fatalf("end %d, %s after %v: a new pod after %v, want one after %v (%d in a row)", i, cause, ran, wait, want, row)
			}
			end := get[*spec.VirtualMachine](w, theVM).Status.LastEnd
			if end == nil || end.Failures != row || end.Cause != string(cause) {
				t.Fatalf("end %d, %s after %v: %+v, want %d failures", i, cause, ran, end, row)
			}
			for range 30 {
				w.work()
				w.pass(time.Second)
			}
			if !w.runs() {
				t.Fatal("it does not run")
			}
		}
	})
}
