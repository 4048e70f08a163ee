package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// adopt is the taking over of a pod. Whatever the operator has seen: in truth the pod
// was let go by an operator, nobody has it, and it is the machine's by its disks.
func (w *world) adopt(a reconcile.AdoptPod) result {
	pod := get[*corev1.Pod](w, "pod/"+a.Name)
	if pod == nil {
		return done
	}
	if a.ResourceVersion == "" || pod.UID != a.UID || pod.ResourceVersion != a.ResourceVersion {
		return stale
	}
	vm := get[*spec.VirtualMachine](w, theVM)
	switch {
	case len(pod.OwnerReferences) > 0 || !w.orphans[pod.UID]:
		w.violated("only what was left is taken over", "pod %+v", pod.ObjectMeta)
	case vm != nil && vm.UID == a.Owner.UID && !slices.Contains(vm.Finalizers, names.FinalizerMachine):
		w.violated("a machine with a pod is held", "%v", vm.Finalizers)
	}
	pod.OwnerReferences = []metav1.OwnerReference{a.Owner}
	pod.Annotations = merged(pod.Annotations, a.Annotations)
	w.put("pod/"+a.Name, pod)
	if g := w.guests[pod.UID]; g != nil {
		g.pod, g.stage, g.told = pod, 0, false // it is told anew
	}
	w.note("pod %s is taken over", pod.UID)
	return done
}

// leftBehind is for a pod that an operator makes who has not seen yet that its machine
// is being deleted without its pod: it is left like one that was there.
func (w *world) leftBehind(o reconcile.Object) {
	pod, is := o.(*corev1.Pod)
	vm := get[*spec.VirtualMachine](w, theVM)
	if is && w.orphans != nil && vm != nil && slices.Contains(vm.Finalizers, metav1.FinalizerOrphanDependents) &&
		len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == vm.UID {
		w.orphans[pod.UID] = true
	}
}

// orphaner is somebody who deletes the machine without its pod, makes it again, or
// copies the pod, as a backup would.
func (w *world) orphaner() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		if w.choose("copies", 3) == 1 {
			w.copyPod()
			return
		}
		w.createVM()
		w.decisions++
		vm = get[*spec.VirtualMachine](w, theVM)
		switch w.choose("another", 3) {
		case 1:
			vm.Spec.VM.MachineUUID = "11111111-2222-3333-4444-555555555555"
		}
		w.put(theVM, vm)
		return
	}
	if vm.DeletionTimestamp != nil {
		return
	}
	switch w.choose("orphaner", 4) {
	case 0, 1:
		// One without an owner that says it was made for this machine is its, too: only
		// the garbage collector, or a person with the right to, has taken the owner.
		if pod := get[*corev1.Pod](w, thePod); pod != nil && pod.DeletionTimestamp == nil &&
			(len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == vm.UID || len(pod.OwnerReferences) == 0 && pod.Annotations[names.AnnotationMadeFor] == string(vm.UID)) {
			w.orphans[pod.UID] = true
		}
		if len(vm.Finalizers) == 0 {
			w.collectOrphans(vm)
			w.deleteVM()
			return
		}
		at := metav1.NewTime(w.now)
		vm.DeletionTimestamp = &at
		vm.Finalizers = append(vm.Finalizers, metav1.FinalizerOrphanDependents)
		w.put(theVM, vm)
		w.note("the machine is deleted without its pod")
	case 2:
		w.copyPod()
	}
}

// copyPod puts a copy in place of the pod, with all that it says, as a backup has it.
func (w *world) copyPod() {
	pod := get[*corev1.Pod](w, thePod)
	if pod == nil || w.guests[pod.UID] != nil {
		return
	}
	pod.UID, pod.OwnerReferences, pod.Spec.NodeName, pod.Status, pod.DeletionTimestamp = "", nil, "", corev1.PodStatus{}, nil
	w.put(thePod, pod)
}

// collectOrphans is the garbage collector, for which the machine's objects have no
// owner any more.
func (w *world) collectOrphans(vm *spec.VirtualMachine) {
	for _, k := range slices.Concat(w.keys("pod/"), w.keys("configmap/"), w.keys("service/")) {
		if o := get[reconcile.Object](w, k); o != nil && len(o.GetOwnerReferences()) > 0 && o.GetOwnerReferences()[0].UID == vm.UID {
			o.SetOwnerReferences(nil)
			w.put(k, o)
			if pod, is := o.(*corev1.Pod); is && w.guests[pod.UID] != nil {
				w.guests[pod.UID].pod = pod
			}
		}
	}
}

// collector lets the garbage collector do what it was asked for, now or later.
func (w *world) collector() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil || vm.DeletionTimestamp == nil || !slices.Contains(vm.Finalizers, metav1.FinalizerOrphanDependents) {
		return
	}
	w.collectOrphans(vm)
	vm.Finalizers = slices.DeleteFunc(vm.Finalizers, func(f string) bool { return f == metav1.FinalizerOrphanDependents })
	if len(vm.Finalizers) == 0 {
		w.deleteVM()
		return
	}
	w.put(theVM, vm)
}
