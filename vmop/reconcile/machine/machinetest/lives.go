package machinetest

import (
	"time"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

func (w *world) live(steps int) error {
	return w.guarded(func() {
		for range steps {
			w.step()
		}
		w.linger()
		w.settle()
	})
}

// guarded returns the promise that what breaks, or why it cannot happen.
func (w *world) guarded(what func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case violation:
			err = v
		case impossible:
			err = v
		default:
			panic(v)
		}
	}()
	what()
	return nil
}

func (w *world) resized(steps int) error {
	return w.guarded(func() {
		for range steps {
			if w.choose("grow", 3) > 0 {
				w.step()
				continue
			}
			if w.choose("nodes", 3) == 0 {
				w.changeRoom()
				continue
			}
			vm := get[*spec.VirtualMachine](w, theVM)
			if vm == nil {
				continue
			}
			cpus, ram := int32(1+w.choose("CPUs", 8)), int64(1+w.choose("RAM", 8))
			vm.Spec.VM.CurrentCPUs, vm.Spec.VM.CurrentRAM = &cpus, resource.NewQuantity(ram<<30, resource.BinarySI)
			vm.Spec.VM.MaximumCPUs, vm.Spec.VM.MaximumRAM = new(int32(8)), new(quantity("8Gi"))
			vm.Generation++
			w.put(theVM, vm)
			w.note("the guest is to have %d CPUs and %d GiB", cpus, ram)
			w.check()
		}
		w.linger()
		w.settle()
		w.checkResized()
	})
}

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

// classed changes classes and the machine while it runs; finally the conditions' advice is
// followed until it runs.
func (w *world) classed(steps int) error {
	return w.guarded(func() {
		for range steps {
			w.operations++
			switch w.choose("event", 8) {
			case 0, 1:
				w.changeClass()
			case 2:
				w.changeOfClassed()
			case 3:
				w.observeSome()
				w.reconcile(true)
			case 4:
				w.pass(5e9)
			default:
				w.work()
			}
		}
		clear(w.failures)
		w.settle()
	})
}

func (w *world) loseClaims(steps int) error {
	return w.guarded(func() {
		for range steps {
			w.operations++
			events := []func(){
				w.work, w.work, w.work, w.kubelet, w.kubelet, w.controllers, w.observeAll, w.observeSome,
				func() { w.reconcile(true) }, func() { w.reconcile(true) },
				w.deleteClaim, w.deleteClaim, w.restoreClaims, w.wantNewDisks,
				func() { w.pass([]time.Duration{time.Second, 40 * time.Second, 11 * time.Minute}[w.choose("time", 3)]) },
				w.startOrStop,
				func() {
					if pod := get[*corev1.Pod](w, thePod); pod != nil {
						delete(w.lastEnds, pod.UID)
						w.deletePod(pod, 30)
					}
				},
			}
			events[w.choose("event", len(events))]()
			w.check()
		}
		w.settle()
	})
}

func (w *world) gives(steps int) error {
	return w.guarded(func() {
		for range steps {
			w.operations++
			events := []func(){
				w.work, w.work, w.kubelet, w.kubelet, w.controllers, w.observeAll, w.observeSome, w.observeSome,
				func() { w.reconcile(true) }, func() { w.reconcile(true) }, w.owner, w.owner, w.owner,
				func() {
					w.pass([]time.Duration{time.Second, 40 * time.Second, 11 * time.Minute}[w.choose("time", 3)])
				},
			}
			events[w.choose("event", len(events))]()
			w.check()
		}
		w.mentioned = nil
		w.settleDeletion()
	})
}

func (w *world) plugs(steps int) error {
	return w.guarded(func() {
		for range steps {
			w.operations++
			events := []func(){
				w.work, w.work, w.attached, w.attached, w.observeAll, w.observeSome, w.controllers,
				func() { w.startsSafely(true) }, func() { w.startsSafely(true) },
				w.changeDisks, w.changeDisks, w.attachByHand,
				func() { w.pass([]time.Duration{time.Second, 40 * time.Second}[w.choose("time", 2)]) },
				func() {
					if w.choose("stops", 4) == 0 {
						w.startOrStop()
					}
				},
			}
			events[w.choose("event", len(events))]()
			w.check()
			w.checkWriters()
		}
		w.settleHot()
	})
}

func (w *world) leaves(steps int) error {
	w.orphans, w.abandoned = map[types.UID]bool{}, map[types.UID]bool{}
	return w.guarded(func() {
		for range steps {
			w.operations++
			events := []func(){
				w.work, w.work, w.kubelet, w.controllers, w.collector, w.collector, w.observeAll, w.observeSome, w.observeSome,
				func() { w.reconcile(true) }, func() { w.reconcile(true) }, w.orphaner, w.orphaner, w.orphaner,
				func() {
					w.pass([]time.Duration{time.Second, 40 * time.Second, 11 * time.Minute}[w.choose("time", 3)])
				},
			}
			events[w.choose("event", len(events))]()
			w.check()
		}
		w.collector()
		if pod := get[*corev1.Pod](w, thePod); pod != nil && len(pod.OwnerReferences) == 0 {
			// The advice of the condition is followed.
			delete(w.guests, pod.UID)
			w.put(thePod, nil)
		}
		w.settleDeletion()
	})
}

func (w *world) provisioned(steps int) error {
	return w.guarded(func() {
		for range steps {
			w.operations++
			events := []func(){
				w.work, w.work, w.kubelet, w.controllers, w.observeAll, w.observeSome, w.observeSome, w.observeSome,
				func() { w.reconcile(true) }, func() { w.reconcile(true) }, w.author, w.author, w.author,
				func() { w.pass([]time.Duration{time.Second, 40 * time.Second, 11 * time.Minute}[w.choose("time", 3)]) },
			}
			events[w.choose("event", len(events))]()
			w.check()
		}
		clear(w.failures)
		w.settle()
		w.checkUserDataSettled()
	})
}

func (w *world) documented(steps int) error {
	return w.guarded(func() {
		for range steps {
			w.operations++
			events := []func(){
				w.work, w.work, w.kubelet, w.controllers, w.observeAll, w.observeSome, w.observeSome,
				func() { w.reconcile(true) }, func() { w.reconcile(true) }, w.writer, w.writer, w.writer, w.forger, w.forger,
				func() { w.pass([]time.Duration{time.Second, 40 * time.Second, 11 * time.Minute}[w.choose("time", 3)]) },
			}
			events[w.choose("event", len(events))]()
			w.check()
		}
		clear(w.failures)
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec.CloudInit, vm.Generation = &spec.CloudInit{UserData: documentOf(someDocuments[3])}, vm.Generation+1
		w.put(theVM, vm)
		w.settle()
	})
}
