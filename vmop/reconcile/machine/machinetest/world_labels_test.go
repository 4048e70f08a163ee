package machinetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// relabel is somebody who gives the machine other labels and annotations.
func (w *world) relabel() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return
	}
	vm.Labels = []map[string]string{nil, {"app": "a"}, {"app": "b", "tier": "x"}, {"app": "c", names.LabelInstance: "other", names.LabelComponent: "none"}}[w.choose("labels", 4)]
	if vm.Annotations == nil {
		vm.Annotations = map[string]string{}
	}
	if delete(vm.Annotations, "note"); w.choose("note", 2) == 1 {
		vm.Annotations["note"] = fmt.Sprint(w.serial)
	}
	w.put(theVM, vm)
	w.note("the machine has the labels %v", vm.Labels)
}

// checkPassedOn: the pod has the labels and annotations of its machine, and its own.
func (w *world) checkPassedOn(vm *spec.VirtualMachine, pod *corev1.Pod) {
	want := objects.InstanceLabels(vm.Name)
	want[names.LabelComponent] = names.ComponentRunner
	for k, v := range vm.Labels {
		if _, own := want[k]; !own {
			want[k] = v
		}
	}
	if !maps.Equal(want, pod.Labels) || vm.Annotations["note"] != pod.Annotations["note"] {
		w.violated("what a machine is labelled with its pod is, too", "%v %q instead of %v %q", pod.Labels, pod.Annotations["note"], want, vm.Annotations["note"])
	}
}

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

// labelled runs a world in which people label machines.
func (w *world) labelled(steps int) error {
	return w.guarded(func() {
		for range steps {
			w.operations++
			events := []func(){
				w.work, w.kubelet, w.kubelet, w.controllers, w.observeAll, w.observeSome,
				func() { w.reconcile(true) }, func() { w.reconcile(true) }, w.relabel, w.relabel, w.askForReset,
				func() {
					w.pass([]time.Duration{time.Second, 40 * time.Second, 11 * time.Minute}[w.choose("time", 3)])
				},
			}
			events[w.choose("event", len(events))]()
			w.check()
		}
		w.linger()
		w.settle()
	})
}

func labelMutants() []mutant {
	const promise = "what a machine is labelled with its pod is, too"
	return []mutant{
		{
			fault: "labels reach new pods only", promise: promise,
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for i, a := range p.Actions {
					if a, is := a.(reconcile.AnnotatePod); is {
						a.Labels = nil
						p.Actions[i] = a
					}
				}
			},
		},
		{
			fault: "labels that are gone stay on the pod", promise: promise,
			after: func(_ *machine.Snapshot, p *reconcile.Plan) {
				for i, a := range p.Actions {
					if a, is := a.(reconcile.AnnotatePod); is {
						a.Labels = maps.Clone(a.Labels)
						maps.DeleteFunc(a.Labels, func(_ string, v *string) bool { return v == nil })
						p.Actions[i] = a
					}
				}
			},
		},
		{
			fault: "the machine's labels are all passed on", promise: promise,
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				for _, a := range p.Actions {
					if c, is := a.(reconcile.Create); is {
						if pod, is := c.Object.(*corev1.Pod); is {
							maps.Copy(pod.Labels, s.VM.Labels)
						}
					}
				}
			},
		},
	}
}
