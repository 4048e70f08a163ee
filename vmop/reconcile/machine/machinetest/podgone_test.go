package machinetest

import (
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whoever deletes the pod of a machine restarts it with the changes that wait, as
// created and ready tell.
func TestDeletedPodComesBackWithChanges(t *testing.T) {
	w := running(t, nil)
	vm := get[*spec.VirtualMachine](w, theVM)
	if !vm.Status.Created || !vm.Status.Ready {
		t.Fatalf("the machine runs: %+v", vm.Status)
	}
	vm.Spec.VM.MaximumCPUs = new(int32(4))
	vm.Generation++
	w.put(theVM, vm)
	w.work()
	w.pass(time.Second)
	pod := get[*corev1.Pod](w, thePod)
	if vm = get[*spec.VirtualMachine](w, theVM); len(vm.Status.RestartAwaitingChanges) != 1 || !vm.Status.Ready {
		t.Fatalf("the change does not wait: %+v", vm.Status)
	}
	w.deletePod(pod, 30)
	w.observeAll()
	w.reconcile(false)
	for range 25 {
		w.work()
		w.pass(5 * time.Second)
	}
	now, vm := get[*corev1.Pod](w, thePod), get[*spec.VirtualMachine](w, theVM)
	if now == nil || now.UID == pod.UID || !strings.Contains(now.Annotations[names.AnnotationStarted], `"maximumCpus":4`) {
		t.Fatalf("pod %+v", now)
	}
	if s := vm.Status; !s.Created || !s.Ready || s.Phase != spec.PhaseRunning || len(s.RestartAwaitingChanges) > 0 {
		t.Errorf("status %+v", s)
	}
}

// A guest that has ended by itself is ending, and not starting, until its pod is seen to end.
func TestPhaseOfAGuestThatEndsByItself(t *testing.T) {
	for _, tt := range []struct {
		name   string
		report *spec.RunnerEnd
		after  time.Duration // of the report, since the container started
		phase  string
		reason string
	}{
		{"its runner has reported the end", &spec.RunnerEnd{Cause: string(runnerconfig.CauseGuestShutdown)}, time.Minute, spec.PhaseStopping, spec.ReasonVMStopped},
		{"the runner of the former pod has", &spec.RunnerEnd{Cause: string(runnerconfig.CauseGuestShutdown)}, -time.Second, spec.PhaseStarting, spec.ReasonStarting},
		{"its runner has reported that it begins", nil, time.Second, spec.PhaseStarting, spec.ReasonStarting},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := running(t, nil)
			p := w.decided(func(s *machine.Snapshot) {
				s.VM = s.VM.DeepCopy()
				started := s.Pod().Status.ContainerStatuses[0].State.Running.StartedAt
				for _, kind := range []string{spec.ConditionRunning, spec.ConditionGuestExecuting} {
					c := spec.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: spec.ReasonVMStopped, LastTransitionTime: metav1.NewTime(started.Add(tt.after))}
					s.VM.Status.Conditions = spec.WithCondition(s.VM.Status.Conditions, c)
				}
				s.VM.Status.RunnerEnd = tt.report
			})
			if len(p.Statuses) == 0 {
				t.Fatal("nothing is said")
			}
			if phase := p.Statuses[0].Status["phase"]; phase != tt.phase {
				t.Errorf("phase %v, want %s", phase, tt.phase)
			}
			if reason, message := said(p, spec.ConditionReady); reason != tt.reason {
				t.Errorf("Ready: %s: %s", reason, message)
			}
		})
	}
}
