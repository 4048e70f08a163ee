package disktest

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (w *world) execute(a reconcile.Action) bool {
	w.Note("%s", a.Target())
	w.dirty = true
	switch a := a.(type) {
	case reconcile.SetFinalizers:
		return w.setFinalizers(a)
	case reconcile.Create:
		if in := a.Object.GetNamespace(); in != w.home() {
			w.Violated("what is made for it is where it belongs", "%s in namespace %s", a.Target(), in)
		}
		switch o := a.Object.(type) {
		case *corev1.PersistentVolumeClaim:
			return w.createClaim(o)
		case *corev1.Secret:
			return w.createKey(o)
		case *corev1.Pod:
			return w.createPod(o)
		}
	case reconcile.DeletePod:
		return w.deletePod(a)
	case reconcile.UpdateClaim:
		return w.updateClaim(a)
	}
	w.Violated("no claim is deleted, and nothing is written over", "%T", a)
	return false
}

func (w *world) setFinalizers(a reconcile.SetFinalizers) bool {
	d := w.truth.disk
	if d == nil {
		return true
	}
	if d.UID != a.UID || d.ResourceVersion != a.ResourceVersion {
		return false
	}
	if want := w.kind(); a.Kind != want {
		w.Violated("an image is written as one", "finalizers of a %s, which is a %s", a.Kind, want)
	}
	if len(a.Finalizers) == 0 && len(w.cache.machines) > 0 {
		w.Violated("a disk that a machine has is kept", "it is let go")
	}
	if u := w.cache.user; len(a.Finalizers) == 0 && u != nil && u.Status.Phase != corev1.PodSucceeded {
		w.Violated("a disk that a pod has is kept", "it is let go, and pod %s has it", u.Name)
	}
	if d = d.DeepCopy(); len(a.Finalizers) == 0 {
		if p := w.truth.pod; p != nil && !w.stale && p.Annotations[names.AnnotationMadeFor] == string(d.UID) {
			w.Violated("nothing is left of a disk", "its pod is there")
		}
		if p := w.truth.giver; p != nil && !w.stale && p.Annotations[names.AnnotationMadeFor] == string(d.UID) {
			w.Violated("nothing is left of a disk", "pod %s is there", p.Name)
		}
	}
	d.Finalizers, d.ResourceVersion = a.Finalizers, w.Version()
	if w.truth.disk = d; d.DeletionTimestamp != nil && len(d.Finalizers) == 0 {
		w.truth.disk = nil
		if c := w.truth.claim; c != nil && len(c.OwnerReferences) > 0 && c.OwnerReferences[0].UID == d.UID {
			w.truth.claim = nil
		}
		if p := w.truth.pod; p != nil && len(p.OwnerReferences) > 0 && p.OwnerReferences[0].UID == d.UID {
			w.truth.pod = nil
		}
		if k := w.truth.key; k != nil && len(k.OwnerReferences) > 0 && k.OwnerReferences[0].UID == d.UID {
			w.truth.key = nil
		}
		if p := w.truth.giver; p != nil && p.Annotations[names.AnnotationMadeFor] == string(d.UID) {
			w.truth.giver, w.truth.giverKey = nil, nil
		}
	}
	return true
}

func (w *world) createClaim(o *corev1.PersistentVolumeClaim) bool {
	if w.truth.claim != nil {
		return false
	}
	if t := w.cache.disk.Status.Target; t != nil && t.PersistentVolumeClaimUID != "" {
		w.Violated("a claim that is gone is not made anew", "claim %s was there", t.PersistentVolumeClaimUID)
	}
	if w.restores {
		w.mayRestore(o)
	}
	c := o.DeepCopy()
	c.UID, c.ResourceVersion = w.UID(), w.Version()
	w.truth.claim = c
	return true
}

func (w *world) createKey(o *corev1.Secret) bool {
	if o.Name == objects.DownloadName(w.claimName()) {
		if w.truth.giverKey != nil {
			return false
		}
		w.mayUnlock(o)
		k := o.DeepCopy()
		k.UID, k.ResourceVersion, k.Data = w.UID(), w.Version(), aKey()
		w.truth.giverKey = k
		return true
	}
	if w.truth.key != nil {
		return false
	}
	k := o.DeepCopy()
	k.UID, k.ResourceVersion, k.Data = w.UID(), w.Version(), aKey()
	w.truth.key = k
	return true
}

func (w *world) createPod(o *corev1.Pod) bool {
	if o.Name == objects.DownloadName(w.claimName()) {
		if w.truth.giver != nil {
			return false
		}
		w.mayGive(o)
		p := o.DeepCopy()
		p.UID, p.ResourceVersion, p.CreationTimestamp = w.UID(), w.Version(), metav1.Time{Time: w.Now}
		w.truth.giver = p
		return true
	}
	if w.truth.pod != nil {
		return false
	}
	p := o.DeepCopy()
	p.UID, p.ResourceVersion, p.CreationTimestamp = w.UID(), w.Version(), metav1.Time{Time: w.Now}
	if _, name := w.names(); p.Name != name {
		w.Violated("nothing is put into a claim of somebody else", "pod %s", p.Name)
	}
	w.mayFill(p)
	w.truth.pod = p
	return true
}

func (w *world) deletePod(a reconcile.DeletePod) bool {
	if g := w.truth.giver; a.Name == objects.DownloadName(w.claimName()) {
		if g != nil && g.UID == a.UID {
			w.truth.giver = nil
		}
		return true
	}
	p := w.truth.pod
	if p == nil || p.UID != a.UID {
		return true
	}
	if p.Annotations[names.AnnotationMadeFor] != string(w.cache.disk.UID) {
		w.Violated("a pod of somebody else is left alone", "%s is deleted", p.Name)
	}
	w.truth.pod = nil
	if p.Status.Phase == corev1.PodRunning && w.Draw("ends slowly", 2) == 0 {
		p = p.DeepCopy()
		p.DeletionTimestamp, p.ResourceVersion = &metav1.Time{Time: w.Now}, w.Version()
		w.truth.pod = p
	}
	return true
}

func (w *world) updateClaim(a reconcile.UpdateClaim) bool {
	c := w.truth.claim
	if c == nil || c.UID != a.UID || c.ResourceVersion != a.ResourceVersion {
		return false
	}
	if w.image && c.Annotations[names.AnnotationFilled] != "" {
		w.Violated("the claim of an image stays as it was made", "%s gets %v", a.Name, a.Annotations)
	}
	if a.Annotations[names.AnnotationFilled] != "" && w.restores && !w.wellRestored[c.UID] {
		w.Violated("what no driver has restored is no disk", "claim %s: %v", c.UID, c.Annotations)
	}
	if a.Annotations[names.AnnotationFilled] != "" && w.held[c.UID] != string(w.cache.disk.UID) {
		w.Violated("what is not filled is not called so", "claim %s has %q", c.UID, w.held[c.UID])
	}
	c = c.DeepCopy()
	for k, v := range a.Annotations {
		c.Annotations[k] = v
	}
	if a.Storage != nil {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = *a.Storage
	}
	c.ResourceVersion = w.Version()
	w.truth.claim = c
	return true
}
