package machinetest

import (
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// A label costs one write, of the pod, also for a machine that an earlier version has
// started; nothing else is written, and nothing waits for a restart.
func TestLabelsCostOneWrite(t *testing.T) {
	for name, start := range map[string]func(*spec.VirtualMachine){
		"no labels": nil,
		"a label":   func(vm *spec.VirtualMachine) { vm.Labels = map[string]string{"app": "a"} },
	} {
		w := running(t, start)
		if p := w.decided(nil); len(p.Actions)+len(p.Statuses)+len(p.Events) > 0 {
			t.Fatalf("%s: nothing has changed, and the plan is %+v", name, p)
		}
		p := w.decided(func(s *machine.Snapshot) {
			s.VM = s.VM.DeepCopy()
			s.VM.Labels = map[string]string{"app": "b"}
		})
		if got := targets(p); !slices.Equal(got, []string{"patch Pod web"}) || len(p.Statuses)+len(p.Events) > 0 {
			t.Errorf("%s: %v, %+v", name, got, p)
		}
	}
	// The pods of an earlier version have no record.
	w := running(t, func(vm *spec.VirtualMachine) { vm.Labels = map[string]string{"app": "a"} })
	pod := get[*corev1.Pod](w, thePod)
	delete(pod.Annotations, names.AnnotationPassedOn)
	delete(pod.Labels, "app")
	w.put(thePod, pod)
	w.observeAll()
	if got := targets(w.reconcile(false)); !slices.Equal(got, []string{"patch Pod web"}) {
		t.Errorf("of an earlier version: %v", got)
	}
	w.observeAll()
	if p := w.decided(nil); len(p.Actions)+len(p.Statuses) > 0 {
		t.Errorf("afterwards: %+v", p)
	}
	if now := get[*corev1.Pod](w, thePod); now.UID != pod.UID || now.Labels["app"] != "a" {
		t.Errorf("pod %+v", now.ObjectMeta)
	}
}
