package machinetest

import (
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// A power-down timeout that is raised holds at once for what the operator deletes,
// and from the next start on for what others do: until then it is said to wait. One
// that is lowered waits for nothing, because the runner keeps it. So it is by the name
// that Deckhouse has for it, which counts if both are given.
func TestRaisedPowerdownTimeout(t *testing.T) {
	raises(t, "spec.vm.powerdownTimeout", func(vm *spec.VirtualMachine, seconds *int32) { vm.Spec.VM.PowerdownTimeout = seconds })
	raises(t, "spec.terminationGracePeriodSeconds", func(vm *spec.VirtualMachine, seconds *int32) { vm.Spec.TerminationGracePeriodSeconds = seconds })
}

func raises(t *testing.T, field string, set func(vm *spec.VirtualMachine, seconds *int32)) {
	t.Helper()
	for seconds, waits := range map[int32]bool{900: false, 60: false, 901: true, 3600: true} {
		w := newWorld(func(string, int) int { return 0 }, machine.Decide)
		for range 3 {
			w.work()
		}
		if grace := *get[*corev1.Pod](w, thePod).Spec.TerminationGracePeriodSeconds; grace != 900+objects.TerminationReserve {
			t.Fatalf("the pod has a grace period of %d s", grace)
		}
		vm := get[*spec.VirtualMachine](w, theVM)
		set(vm, &seconds)
		vm.Generation++
		w.put(theVM, vm)
		for range 3 {
			w.pass(time.Minute)
			w.work()
		}
		vm = get[*spec.VirtualMachine](w, theVM)
		if got := len(vm.Status.RestartAwaitingChanges) == 1 && vm.Status.RestartAwaitingChanges[0].Path == field; got != waits {
			t.Errorf("%d s: %+v", seconds, vm.Status.RestartAwaitingChanges)
		}
		c := spec.FindCondition(vm.Status.Conditions, spec.ConditionAwaitingRestart)
		if said := strings.Contains(c.Message, field); said != waits {
			t.Errorf("%d s: %s", seconds, c.Message)
		}
		vm.Spec.VM.State = spec.StateStopped
		vm.Generation++
		w.put(theVM, vm)
		w.observeAll()
		s, _ := w.snapshot()
		for _, a := range machine.Decide(s).Actions {
			if d, is := a.(reconcile.DeletePod); is && d.GraceSeconds != int64(seconds)+objects.TerminationReserve {
				t.Errorf("%d s: the operator gives %d s", seconds, d.GraceSeconds)
			}
		}
	}
}
