package machinetest

import (
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
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
