package machinetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	"pgregory.net/rapid"
)

func TestNoMachineIsNoPanic(t *testing.T) {
	if p := machine.Decide(machine.Snapshot{}); len(p.Actions)+len(p.Statuses)+len(p.Events) > 0 {
		t.Errorf("%+v", p)
	}
	if _, err := machine.Objects(nil, objects.Settings{}); err == nil {
		t.Error("no error")
	}
}

// A clock that was ahead keeps no machine down.
func TestTimesOfTheFuture(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	w.work()
	w.work()
	delete(w.objects, thePod)
	w.observeAll()
	s, _ := w.snapshot()
	far := metav1.NewTime(w.now.Add(24 * time.Hour))
	s.VM.Status.Conditions = []spec.Condition{{Type: spec.ConditionRunning, Status: "True", Reason: spec.ReasonVMStarted, LastTransitionTime: far}}
	if p := machine.Decide(s); len(p.Statuses) == 0 || p.Statuses[0].Manager != names.RunnerStatusManager {
		t.Errorf("a report of the future is believed: %+v", p)
	}
	s.VM.Status = spec.VirtualMachineStatus{}
	s.VM.Status.LastEnd = &spec.MachineEnd{Cause: "qemu-failure", Time: far, Failures: 3, ObservedGeneration: s.VM.Generation}
	if p := machine.Decide(s); !p.StartsPod() {
		t.Errorf("an end in the future delays the next start: %+v", p)
	}
}

// What ended a pod is noted also when its machine has become invalid since, whatever stands in
// the manifest: nothing that a decision is made from later is needed for that.
func TestEndsOfInvalidMachines(t *testing.T) {
	begun := running(t, func(vm *spec.VirtualMachine) {
		vm.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: quantity("1Gi")}}
	})
	rapid.Check(t, func(t *rapid.T) {
		foreign := rapid.OneOf(spectest.Foreign(), rapid.Just(invalid())).Draw(t, "machine")
		state := corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.NewTime(begun.now)}
		state.Reason = rapid.SampledFrom([]string{"OOMKilled", "Error", "Completed"}).Draw(t, "reason")
		state.Message = rapid.SampledFrom([]string{"", qemuKilled()}).Draw(t, "told")
		settings := rapid.SampledFrom([]objects.Settings{{}, begun.settings}).Draw(t, "settings")
		p := begun.decided(func(s *machine.Snapshot) {
			s.VM = s.VM.DeepCopy()
			s.VM.Spec, s.Settings = foreign.Spec, settings
			s.VM.Spec.DeletionPolicy = ""
			s.VM.Generation++
			pod := s.Pod().DeepCopy()
			pod.Status.Phase = corev1.PodFailed
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &state}
			setPod(s, pod)
		})
		noted := slices.ContainsFunc(p.Statuses, func(st reconcile.StatusApply) bool { return st.Status["lastEnd"] != nil })
		if !noted {
			t.Fatalf("the end is not noted: %+v", p)
		}
	})
}

func invalid() *spec.VirtualMachine {
	vm := &spec.VirtualMachine{}
	vm.Spec.VM.State = spec.StateRunning
	vm.Spec.VM.MaximumCPUs = new(int32(-1))
	return vm
}

// Only a ConfigMap that the machine owns is read.
func TestConfigMapOfOthersIsNotRead(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	w.put("claim/web-runner-data", &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{ // it comes first
		Name: "web-runner-data", Labels: objects.InstanceLabels("web"), Annotations: map[string]string{names.AnnotationOrigin: string(machineconfig.OriginVMOP)},
	}})
	w.observeAll()
	s, _ := w.snapshot()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "apps", Labels: objects.InstanceLabels("web"), ResourceVersion: "1"}}
	cm.Data = map[string]string{names.ConfigKey: "\"/Runner\":\n  resetCounter: 7\n"}
	s.ConfigMap = cm
	counter := func() string {
		for _, a := range machine.Decide(s).Actions {
			if a, is := a.(reconcile.Apply); is && strings.HasPrefix(a.Target().String(), "patch ConfigMap") {
				return a.Object.GetAnnotations()[names.AnnotationResetCounter]
			}
		}
		return "none"
	}
	if got := counter(); got != "0" {
		t.Errorf("counter %s of a ConfigMap that nobody owns", got)
	}
	cm.OwnerReferences = []metav1.OwnerReference{{UID: s.VM.UID}}
	if got := counter(); got != "7" {
		t.Errorf("counter %s of the machine's own", got)
	}
}

// A pod that is pending only for an operator that lags is not replaced: its guest
// has started.
func TestPodThatHasStartedIsNotReplaced(t *testing.T) {
	start := func(decide func(machine.Snapshot) reconcile.Plan) (*world, error) {
		w := newWorld(func(string, int) int { return 0 }, decide)
		for range 5 {
			w.observeAll()
			w.reconcile(false)
		}
		personDoes(w, []string{"sets-cpus"})
		w.observeAll()
		w.reconcile(false) // the configuration
		w.observeAll()
		pod := get[*corev1.Pod](w, thePod)
		pod.Spec.NodeName = "n1"
		w.start(pod)
		err := w.guarded(func() { w.reconcile(false) })
		return w, err
	}
	w, err := start(machine.Decide)
	if err != nil {
		t.Fatal(err)
	}
	if pod := get[*corev1.Pod](w, thePod); pod == nil || pod.DeletionTimestamp != nil || w.guests[pod.UID] == nil {
		t.Errorf("the guest is gone: %s", strings.Join(w.log, "\n"))
	}
	if last := w.log[len(w.log)-1]; last != "03:04:05 delete Pod web: the snapshot was old" {
		t.Errorf("the last thing is: %s", last)
	}
	whatever := mutant{after: each(func(_ *machine.Snapshot, a reconcile.DeletePod) reconcile.Action { a.ResourceVersion = ""; return a })}
	if _, err := start(whatever.decide); err == nil || !strings.HasPrefix(err.Error(), "a pod that has started is not replaced") {
		t.Errorf("without the version: %v", err)
	}
}
