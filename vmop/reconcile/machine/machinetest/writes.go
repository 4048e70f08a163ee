package machinetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// act executes one action on the truth.
func (w *world) act(a reconcile.Action) result {
	switch a := a.(type) {
	case reconcile.Create:
		o := a.Object.DeepCopyObject().(reconcile.Object)
		w.rename(o)
		if a.Certificate != nil {
			data, err := displaycert.Make(a.Certificate)
			if err != nil {
				panic(err)
			}
			o.(*corev1.Secret).Data = data
		}
		return w.create(o)
	case reconcile.Apply:
		return w.apply(a.Object.DeepCopyObject().(reconcile.Object))
	case reconcile.UpdateClaim:
		return w.updateClaim(a)
	case reconcile.AnnotatePod:
		pod := get[*corev1.Pod](w, "pod/"+a.Name)
		if pod == nil || pod.UID != a.UID {
			return stale
		}
		pod.Annotations = merged(pod.Annotations, a.Annotations)
		pod.Labels = merged(pod.Labels, a.Labels)
		w.put("pod/"+a.Name, pod)
	case reconcile.AdoptPod:
		return w.adopt(a)
	case reconcile.AnnotateConfigMap:
		cm := get[*corev1.ConfigMap](w, "configmap/"+a.Name)
		if cm == nil || cm.UID != a.UID || cm.ResourceVersion != a.ResourceVersion {
			return stale
		}
		maps.Copy(cm.Annotations, a.Annotations)
		w.put("configmap/"+a.Name, cm)
	case reconcile.ResizePod:
		return w.resize(a)
	case reconcile.DeletePod:
		pod := get[*corev1.Pod](w, "pod/"+a.Name)
		if pod == nil {
			return done
		}
		if pod.UID != a.UID || a.ResourceVersion != "" && a.ResourceVersion != pod.ResourceVersion {
			return stale
		}
		if vm, seen := get[*spec.VirtualMachine](w, theVM), cached[*spec.VirtualMachine](w, theVM); vm != nil && seen != nil && seen.DeletionTimestamp == nil &&
			w.guests[pod.UID] != nil && pod.DeletionTimestamp == nil && w.keepsPod(seen, pod) && len(pod.OwnerReferences) > 0 && vm.UID == pod.OwnerReferences[0].UID {
			w.violated("a pod that has started is not replaced", "%s", pod.UID)
		}
		if seen := cached[*corev1.Pod](w, thePod); seen == nil || seen.Status.Phase != corev1.PodFailed {
			// It was to go before it failed.
			delete(w.lastEnds, pod.UID)
		}
		if w.besideEnded(pod) {
			delete(w.lastEnds, pod.UID) // it was not the last run
		}
		w.deletePod(pod, a.GraceSeconds)
	case reconcile.DeleteClaim:
		return w.deleteOwn("claim/"+a.Name, a.UID, a.ResourceVersion)
	case reconcile.DeleteSecret:
		return w.deleteOwn("secret/"+a.Name, a.UID, a.ResourceVersion)
	case reconcile.DeleteConfigMap:
		return w.deleteHolder(a)
	case reconcile.DeleteAttachment:
		return w.deleteAttachment(a)
	case reconcile.DeleteService:
		if svc := get[*corev1.Service](w, theLB); svc != nil && svc.UID != a.UID {
			return stale
		}
		w.put(theLB, nil)
	case reconcile.SetFinalizers:
		return w.setFinalizers(a)
	case reconcile.Patch:
		vm := get[*spec.VirtualMachine](w, theVM)
		if vm == nil || vm.ResourceVersion != a.ResourceVersion {
			return stale
		}
		if w.decisions != w.stopNoted {
			w.violated("a decision is respected", "the machine is stopped for a guest that powered off before somebody decided about it")
		}
		vm.Spec.VM.State = stateOf(a)
		vm.Generation++
		w.put(theVM, vm)
	default:
		w.violated("actions are known", "%T", a)
	}
	return done
}

// setFinalizers writes the finalizers of the machine, which goes when it has none
// any more.
func (w *world) setFinalizers(a reconcile.SetFinalizers) result {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return done
	}
	if vm.UID != a.UID || vm.ResourceVersion != a.ResourceVersion {
		return stale
	}
	if a.Releases != (vm.DeletionTimestamp != nil) || slices.Contains(a.Finalizers, names.FinalizerMachine) == a.Releases {
		w.violated("a machine is held while it is there", "%+v", a)
	}
	vm.Finalizers = a.Finalizers
	if len(vm.Finalizers) > 0 || vm.DeletionTimestamp == nil {
		w.put(theVM, vm)
		return done
	}
	for uid, g := range w.guests {
		if pod := get[*corev1.Pod](w, "pod/"+g.pod.Name); pod != nil && pod.UID == uid && len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == vm.UID {
			w.violated("a machine is seen until its guest has ended", "pod %s runs", uid)
		}
	}
	w.deleteVM()
	return done
}

// deleteVM is the end of the machine.
func (w *world) deleteVM() {
	w.put(theVM, nil)
	w.requests = 0
}

// stateOf is the state that a patch of a machine sets.
func stateOf(a reconcile.Patch) spec.MachineState {
	var patched spec.VirtualMachine
	data, err := json.Marshal(a.Body())
	if err == nil {
		err = json.Unmarshal(data, &patched)
	}
	if err != nil || a.Kind != names.KindVirtualMachine || a.Subresource != "" || patched.Spec.VM.State == "" {
		panic(fmt.Sprintf("%+v: %v", a, err))
	}
	return patched.Spec.VM.State
}

func keyOf(o reconcile.Object) string {
	switch o.(type) {
	case *corev1.ConfigMap:
		return "configmap/" + o.GetName()
	case *corev1.Service:
		return "service/" + o.GetName()
	case *corev1.Secret:
		return "secret/" + o.GetName()
	case *corev1.PersistentVolumeClaim:
		return "claim/" + o.GetName()
	case *corev1.Pod:
		return "pod/" + o.GetName()
	case *spec.VirtualMachineBlockDeviceAttachment:
		return "attachment/" + o.GetName()
	}
	return ""
}

func (w *world) create(o reconcile.Object) result {
	key := keyOf(o)
	if get[reconcile.Object](w, key) != nil {
		return stale
	}
	if pod, ok := o.(*corev1.Pod); ok {
		w.checkNewPod(pod)
	}
	if _, ok := o.(*corev1.PersistentVolumeClaim); ok {
		delete(w.former, o.GetName()) // what VM-Operator left under this name is not there any more
	}
	o.SetUID("")
	o.SetCreationTimestamp(metav1.NewTime(w.now))
	w.put(key, o)
	w.leftBehind(o)
	if vm := cached[*spec.VirtualMachine](w, theVM); isRunners(o) && vm != nil {
		w.made[o.GetUID()] = madeFor(vm)
		w.madeAt[o.GetUID()] = vm.Generation
		if w.inline {
			w.given[o.GetUID()] = vm.Spec.InlineUserData()
		}
	}
	return done
}

// apply is server-side apply where one manager owns everything but what patches have
// written, which are owners of their own.
func (w *world) apply(o reconcile.Object) result {
	key := keyOf(o)
	old := get[reconcile.Object](w, key)
	if old == nil {
		if o.GetResourceVersion() != "" {
			return stale
		}
		w.put(key, o)
		return done
	}
	if rv := o.GetResourceVersion(); rv != "" && rv != old.GetResourceVersion() {
		return stale
	}
	o.SetUID(old.GetUID())
	w.checkApply(old, o)
	for _, patched := range []string{names.AnnotationOperatorClaim, names.AnnotationOperatorAnswer} {
		if text, there := old.GetAnnotations()[patched]; there {
			o.GetAnnotations()[patched] = text
		}
	}
	w.put(key, o)
	return done
}

func (w *world) updateClaim(a reconcile.UpdateClaim) result {
	pvc := get[*corev1.PersistentVolumeClaim](w, "claim/"+a.Name)
	if pvc == nil || pvc.UID != a.UID || pvc.ResourceVersion != a.ResourceVersion {
		return stale
	}
	if pvc.Labels == nil {
		pvc.Labels = map[string]string{}
	}
	maps.Copy(pvc.Labels, a.Labels)
	if pvc.Annotations == nil {
		pvc.Annotations = map[string]string{}
	}
	w.checkOrigin(pvc, a)
	maps.Copy(pvc.Annotations, a.Annotations)
	if a.Storage != nil {
		have := pvc.Spec.Resources.Requests[corev1.ResourceStorage]
		if a.Storage.Cmp(have) < 0 {
			w.violated("no claim shrinks", "%s from %v to %v", a.Name, have.String(), a.Storage)
		}
		if pvc.Spec.Resources.Requests == nil {
			pvc.Spec.Resources.Requests = corev1.ResourceList{}
		}
		pvc.Spec.Resources.Requests[corev1.ResourceStorage] = *a.Storage
	}
	w.put("claim/"+a.Name, pvc)
	return done
}

// deletePod begins the graceful deletion of a pod.
func (w *world) deletePod(pod *corev1.Pod, grace int64) {
	key := "pod/" + pod.Name
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		w.put(key, nil)
		return
	}
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds != nil && grace < *pod.DeletionGracePeriodSeconds {
		at := metav1.NewTime(w.now.Add(time.Duration(grace) * time.Second))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
		w.put(key, pod)
	}
}

// statusOf reads a part of a status.
func (w *world) statusOf(part map[string]any) spec.VirtualMachineStatus {
	data, err := json.Marshal(part)
	if err != nil {
		w.violated("a status is JSON", "%v", err)
	}
	var out spec.VirtualMachineStatus
	if err := json.Unmarshal(data, &out); err != nil {
		w.violated("a status fits the type", "%v: %s", err, data)
	}
	return out
}

// applyStatus is server-side apply of a part of the status.
func (w *world) applyStatus(vm *spec.VirtualMachine, manager string, part map[string]any) {
	next := w.statusOf(part)
	before := w.owned[manager]
	now := map[string]bool{}
	to, from := reflect.ValueOf(&vm.Status).Elem(), reflect.ValueOf(&next).Elem()
	for i := range to.NumField() {
		name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		if name == "conditions" {
			continue
		}
		if _, given := part[name]; given {
			now[name] = true
			to.Field(i).Set(from.Field(i))
		} else if before[name] {
			to.Field(i).SetZero()
		}
	}
	var kept []spec.Condition
	for _, c := range vm.Status.Conditions {
		if n := spec.FindCondition(next.Conditions, c.Type); n != nil {
			kept = append(kept, *n)
		} else if !before["condition "+c.Type] || w.ownedByOther(manager, "condition "+c.Type) {
			kept = append(kept, c)
		}
	}
	for _, c := range next.Conditions {
		now["condition "+c.Type] = true
		if spec.FindCondition(kept, c.Type) == nil {
			kept = append(kept, c)
		}
	}
	vm.Status.Conditions = kept
	w.owned[manager] = now
}

// ownedByOther reports whether another manager has applied a part of the status, too.
func (w *world) ownedByOther(manager, part string) bool {
	for m, parts := range w.owned {
		if m != manager && parts[part] {
			return true
		}
	}
	return false
}

// merged is a map after a merge patch.
func merged(m map[string]string, patch map[string]*string) map[string]string {
	for k, v := range patch {
		switch {
		case v == nil:
			delete(m, k)
		case m == nil:
			m = map[string]string{k: *v}
		default:
			m[k] = *v
		}
	}
	return m
}
