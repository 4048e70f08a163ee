package machinetest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// awaiting are the paths of what waits for the next start, in the status that is stored
// after some rounds.
func (w *world) awaiting() []string {
	for range 4 {
		w.observeAll()
		w.reconcile(false)
	}
	var out []string
	for _, c := range get[*spec.VirtualMachine](w, theVM).Status.RestartAwaitingChanges {
		out = append(out, c.Path)
	}
	return out
}

// What a pod notes of its machine may be of an earlier vmop, which knew fewer defaults
// and fewer fields, and other ones: an upgrade lets nothing wait, also not when
// something changes afterwards that needs no restart.
func TestPromisesOfAnUpgrade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(string, int) int { return 0 }, decideOnLess)
		vm := get[*spec.VirtualMachine](w, theVM)
		drawn := spectest.VirtualMachine().Draw(t, "machine")
		vm.Spec = *drawn.Spec.DeepCopy()
		vm.Spec.RunPolicy, vm.Spec.VM.State = "", spec.StateRunning
		spec.Default(vm)
		w.put(theVM, vm)
		w.provide(vm)
		w.provideBeside(vm)
		for range 8 {
			w.work()
			w.pass(time.Second)
		}
		pod := get[*corev1.Pod](w, thePod)
		if pod == nil || pod.Status.Phase != corev1.PodRunning {
			return // something is missing, such as an image repository
		}
		var noted struct {
			Generation int64          `json:"generation"`
			Spec       map[string]any `json:"spec"`
		}
		if err := json.Unmarshal([]byte(pod.Annotations[names.AnnotationStarted]), &noted); err != nil {
			t.Fatal(err)
		}
		before := w.awaiting()
		then := noted.Spec
		if rapid.Bool().Draw(t, "without defaults") {
			then = nil
			data, err := json.Marshal(drawn.Spec)
			if err != nil || json.Unmarshal(data, &then) != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"cloudInit", "loggingProperties", "provisioning"} { // digests
				if delete(then, key); noted.Spec[key] != nil {
					then[key] = noted.Spec[key]
				}
			}
			if m, is := then["vm"].(map[string]any); is {
				m["state"] = "Running"
			}
			delete(then, "runPolicy")
		}
		then["ofAnEarlierVersion"] = map[string]any{"a": 1}
		noted.Spec, noted.Generation = then, 1
		data, err := json.Marshal(noted)
		if err != nil {
			t.Fatal(err)
		}
		pod = get[*corev1.Pod](w, thePod)
		pod.Annotations[names.AnnotationStarted] = string(data)
		w.put(thePod, pod)
		vm = get[*spec.VirtualMachine](w, theVM)
		vm.Spec.GuestShutdownStops = !vm.Spec.GuestShutdownStops
		vm.Generation = 2
		w.put(theVM, vm)
		if after := w.awaiting(); !slices.Equal(after, before) {
			t.Fatalf("%v waits, %v before the upgrade\n%s", after, before, data)
		}
	})
}

// The order in which a machine looks for a system is decided when it starts.
func TestBootOrderWaits(t *testing.T) {
	w := running(t, func(vm *spec.VirtualMachine) {
		other := vm.Spec.VM.Disks[0].DeepCopy()
		other.VolumeClaimTemplate.Metadata.Name = "data"
		vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, *other)
	})
	if all := w.awaiting(); len(all) > 0 {
		t.Fatalf("%v", all)
	}
	change := func(do func(*spec.VirtualMachine)) []string {
		vm := get[*spec.VirtualMachine](w, theVM)
		do(vm)
		vm.Generation++
		w.put(theVM, vm)
		return w.awaiting()
	}
	if all := change(func(vm *spec.VirtualMachine) { vm.Spec.VM.Disks[1].Bootindex = new(int32(0)) }); !slices.Equal(all, []string{"spec.vm.disks[1].bootindex"}) {
		t.Errorf("%v", all)
	}
	if all := change(func(vm *spec.VirtualMachine) { vm.Spec.VM.Disks[1].Bootindex = nil }); len(all) > 0 {
		t.Errorf("it is as it was, and %v waits", all)
	}
	// The order of the list counts where nothing else says it.
	if all := change(func(vm *spec.VirtualMachine) { slices.Reverse(vm.Spec.VM.Disks) }); len(all) == 0 {
		t.Error("another order is no change")
	}
}
