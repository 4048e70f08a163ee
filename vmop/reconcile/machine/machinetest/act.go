package machinetest

import (
	"maps"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
			// It was due to be deleted before it failed.
			delete(w.lastEnds, pod.UID)
		}
		if w.besideEnded(pod) {
			delete(w.lastEnds, pod.UID) // not the last run
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

func (w *world) create(o reconcile.Object) result {
	key := keyOf(o)
	if get[reconcile.Object](w, key) != nil {
		return stale
	}
	if pod, ok := o.(*corev1.Pod); ok {
		w.checkNewPod(pod)
	}
	if _, ok := o.(*corev1.PersistentVolumeClaim); ok {
		delete(w.former, o.GetName()) // VM-Operator's object of this name no longer exists
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
