package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// adopt verifies the adoption of a pod: whatever the operator has observed, the pod was released
// by an operator, has no owner, and is the machine's by its disks.
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
		g.pod, g.stage, g.told = pod, 0, false // it reports anew
	}
	w.note("pod %s is taken over", pod.UID)
	return done
}

// leftBehind orphans a pod created by an operator that has not observed yet that its machine is
// being deleted without its pod.
func (w *world) leftBehind(o reconcile.Object) {
	pod, is := o.(*corev1.Pod)
	vm := get[*spec.VirtualMachine](w, theVM)
	if is && w.orphans != nil && vm != nil && slices.Contains(vm.Finalizers, metav1.FinalizerOrphanDependents) &&
		len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == vm.UID {
		w.orphans[pod.UID] = true
	}
}

// orphaner deletes the machine without its pod, recreates it, or copies the pod, as a backup
// would.
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
		// One without an owner whose record names this machine is its pod, too: only the garbage
		// collector, or a user with the right to, has removed the owner.
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
		if cm := get[*corev1.ConfigMap](w, theConfig); cm != nil && len(cm.OwnerReferences) > 0 && cm.OwnerReferences[0].UID == vm.UID {
			w.abandoned[vm.UID] = true // it has had no pod otherwise, and nothing shows it
		}
		w.put(theVM, vm)
		w.note("the machine is deleted without its pod")
	case 2:
		w.copyPod()
	case 3:
		vm.Spec.DeletionPolicy = spec.DeletionDelete
		vm.Generation++
		w.put(theVM, vm)
	}
}

// copyPod replaces the pod by a copy with all annotations, as from a backup.
func (w *world) copyPod() {
	pod := get[*corev1.Pod](w, thePod)
	if pod == nil || w.guests[pod.UID] != nil {
		return
	}
	pod.UID, pod.OwnerReferences, pod.Spec.NodeName, pod.Status, pod.DeletionTimestamp = "", nil, "", corev1.PodStatus{}, nil
	w.put(thePod, pod)
	// An operator that has not seen yet that the machine is gone takes the copy for its pod.
	vm, seen := get[*spec.VirtualMachine](w, theVM), cached[*spec.VirtualMachine](w, theVM)
	if copied := get[*corev1.Pod](w, thePod); vm == nil && seen != nil && copied.Annotations[names.AnnotationMadeFor] == string(seen.UID) {
		w.orphans[copied.UID] = true
	}
}

// collectOrphans models the garbage collector, which removes the owner of the machine's objects.
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
