package machinetest

import (
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deleteOwn verifies the deletion of a claim or a secret for its machine: whatever the operator
// has observed, the machine is being deleted and wants it, its guest has ended, and the object
// was created for it and has no other owner.
func (w *world) deleteOwn(key string, uid types.UID, version string) result {
	o := get[reconcile.Object](w, key)
	if o == nil {
		return done
	}
	if uid == "" || version == "" || o.GetUID() != uid || o.GetResourceVersion() != version {
		return stale
	}
	vm := get[*spec.VirtualMachine](w, theVM)
	_, name, _ := strings.Cut(key, "/")
	switch {
	case vm == nil || vm.DeletionTimestamp == nil || vm.Spec.DeletionPolicy != spec.DeletionDelete:
		w.violated("only what is its own goes with a machine that wants it", "%s goes, and the machine is %+v", key, vm)
	case w.abandoned[vm.UID]:
		w.violated("only what is its own goes with a machine that wants it", "%s goes, and the machine was deleted without what is its", key)
	case o.GetAnnotations()[names.AnnotationMadeFor] != string(vm.UID):
		w.violated("only what is its own goes with a machine that wants it", "%s was made for %v", key, o.GetAnnotations())
	case slices.Contains(w.mentioned, name):
		w.violated("only what is its own goes with a machine that wants it", "%s is mentioned by another machine", key)
	}
	for _, g := range w.guests {
		if slices.Contains(g.claims, name) {
			w.violated("only what is its own goes with a machine that wants it", "%s is used by pod %s", key, g.pod.Name)
		}
	}
	if pvc, is := o.(*corev1.PersistentVolumeClaim); is {
		at := metav1.NewTime(w.now)
		pvc.DeletionTimestamp = &at
		w.put(key, pvc)
		return done
	}
	w.put(key, nil)
	return done
}

func (w *world) owner() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		w.createVM()
		w.decisions++
		return
	}
	switch w.choose("owner", 5) {
	case 0:
		vm.Spec.DeletionPolicy = []spec.DeletionPolicy{"", spec.DeletionRetain, spec.DeletionDelete, spec.DeletionDelete}[w.choose("policy", 4)]
		vm.Generation++
	case 1:
		if vm.DeletionTimestamp != nil {
			return
		}
		if len(vm.Finalizers) == 0 {
			w.deleteVM()
			return
		}
		at := metav1.NewTime(w.now)
		vm.DeletionTimestamp = &at
	case 2: // recreated without the annotation of the machine it is for
		const key = "claim/web-system-disk"
		if old := get[*corev1.PersistentVolumeClaim](w, key); old != nil && !w.inUse(old.Name) {
			w.put(key, nil)
			pvc := old.DeepCopy()
			pvc.UID, pvc.DeletionTimestamp = "", nil
			delete(pvc.Annotations, names.AnnotationMadeFor)
			w.put(key, pvc)
		}
		return
	case 3:
		if w.mentioned = nil; w.choose("mentioned", 2) == 0 {
			w.mentioned = []string{"web-system-disk"}
		}
		return
	case 4:
		w.intruder()
		return
	}
	w.put(theVM, vm)
	w.note("policy %q, deleted %v", vm.Spec.DeletionPolicy, vm.DeletionTimestamp != nil)
}
