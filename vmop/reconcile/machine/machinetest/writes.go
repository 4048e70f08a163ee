package machinetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setFinalizers writes the finalizers of the machine, which is deleted when it has none.
func (w *world) setFinalizers(a reconcile.SetFinalizers) result {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return done
	}
	if vm.UID != a.UID || vm.ResourceVersion != a.ResourceVersion {
		return stale
	}
	held := slices.Contains(vm.Finalizers, names.FinalizerMachine)
	if a.Releases != held || a.Releases != (vm.DeletionTimestamp != nil) || slices.Contains(a.Finalizers, names.FinalizerMachine) == a.Releases {
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

func (w *world) deleteVM() {
	w.put(theVM, nil)
	w.requests = 0
}

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

// apply models server-side apply where one manager owns everything except what patches, as other
// managers, have written.
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

func (w *world) ownedByOther(manager, part string) bool {
	for m, parts := range w.owned {
		if m != manager && parts[part] {
			return true
		}
	}
	return false
}

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
