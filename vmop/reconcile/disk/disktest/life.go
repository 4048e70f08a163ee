package disktest

import (
	"strings"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// life returns the first promise that a drawn life of a disk breaks, or nil.
func (w *world) life() *promises.Violation {
	return promises.Broken(func() {
		w.makeDisk()
		w.see(4)
		for range 5 + w.Draw("steps", 60) {
			w.step()
		}
		w.settle()
	})
}

func (w *world) step() {
	d, c := w.truth.disk, w.truth.claim
	claim, pod := w.names()
	if p := w.truth.pod; p != nil && p.Status.Phase == corev1.PodRunning && w.Draw("says", 3) == 0 {
		w.said = choose(w, "progress", nil, &runnerconfig.ImportProgress{Step: "downloading", Done: 1, Total: 2}, &runnerconfig.ImportProgress{Step: "unpacking", Done: 7, Total: 7}, &runnerconfig.ImportProgress{Step: "converting"})
		w.see(4)
		w.reconcile(-1)
	}
	often := 12
	if c != nil && c.Annotations[names.AnnotationFilled] != "" {
		often = 2
	}
	if !w.cluster && w.Draw("downloads", often) == 0 {
		w.downloads()
		return
	}
	if w.restores && w.Draw("snapshots", 6) == 0 {
		w.snapshots()
		return
	}
	switch what := w.Draw("what", 46); {
	case what < 12:
		w.reconcile(-1)
	case what < 14:
		w.reconcile(w.Draw("writes", 3))
		if w.Note("another operator"); !w.stale {
			w.see(4)
		}
	case what < 20:
		w.see(w.Draw("cache", 5))
	case what < 27:
		w.fills()
	case what < 29:
		w.Now = w.Now.Add(choose(w, "time", time.Second, time.Minute, 10*time.Minute))
	case what == 29 && c != nil && c.Status.Phase == "":
		w.changeClaim(c, func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase, c.Status.Capacity = corev1.ClaimBound, c.Spec.Resources.Requests.DeepCopy()
			w.provisions(c)
		})
	case what == 30 && c != nil && c.Status.Phase == corev1.ClaimBound:
		w.changeClaim(c, func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = c.Spec.Resources.Requests.DeepCopy() })
	case what == 31 && d != nil && !w.image: // its specification is immutable
		w.changeDisk(d, func(d *spec.VirtualDisk) {
			d.Spec.PersistentVolumeClaim.Size = resource.MustParse(choose(w, "size", "1Gi", "2Gi", "4Gi"))
			d.Generation++
		})
	case what == 32 && d != nil && d.DeletionTimestamp == nil:
		w.deleteDisk(d)
	case what == 33:
		w.truth.machines = choose(w, "machines", nil, []string{"web"})
	case what == 34:
		w.uses()
	case what == 35 && c == nil && w.Draw("somebody", 2) == 0:
		w.takeClaimName(claim)
	case what == 36 && c != nil:
		w.truth.claim = nil
	case what == 37:
		if w.truth.pod = nil; w.Draw("somebody", 3) == 0 {
			w.truth.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.home(), Name: pod, UID: w.UID(), ResourceVersion: w.Version()}}
		}
	case what == 38 && d == nil:
		w.makeDisk()
	case what == 39 && c != nil && d != nil && w.Draw("orphan", 3) == 0:
		w.changeClaim(c, func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil })
	case what >= 40 && what < 43 && d != nil:
		w.changeDisk(d, func(d *spec.VirtualDisk) {
			d.Annotations = map[string]string{names.AnnotationDownloadRequest: d.Annotations[names.AnnotationDownloadRequest], names.AnnotationUploadRequest: choose(w, "request", "r1", "r2", strings.Repeat("r", 100))}
		})
	case what == 43 && w.Draw("a Secret", 2) == 0:
		if w.truth.key = nil; w.Draw("of somebody", 2) == 0 {
			w.truth.key = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: claim + "-transfer", UID: w.UID(), ResourceVersion: w.Version()}, Data: aKey()}
		}
	case what >= 44 && w.truth.pod != nil && w.truth.pod.Status.Phase == corev1.PodSucceeded:
		w.Note("somebody deletes a pod that has ended")
		w.truth.pod = nil
	default:
		return
	}
}

func (w *world) changeDisk(d *spec.VirtualDisk, change func(*spec.VirtualDisk)) {
	d = d.DeepCopy()
	change(d)
	d.ResourceVersion, w.truth.disk = w.Version(), d
}

func (w *world) changeClaim(c *corev1.PersistentVolumeClaim, change func(*corev1.PersistentVolumeClaim)) {
	c = c.DeepCopy()
	change(c)
	c.ResourceVersion, w.truth.claim = w.Version(), c
}

func (w *world) deleteDisk(d *spec.VirtualDisk) {
	if len(d.Finalizers) == 0 {
		w.truth.disk = nil
		return
	}
	w.changeDisk(d, func(d *spec.VirtualDisk) { d.DeletionTimestamp = &metav1.Time{Time: w.Now}; d.Generation++ })
}

func (w *world) uses() {
	w.truth.user, w.truth.guest = nil, nil
	switch w.Draw("user", 4) {
	case 0:
		w.truth.user = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "somebody"}}
	case 1:
		w.truth.user, w.truth.guest = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, new(resource.MustParse(choose(w, "guest", "1Gi", "4Gi")))
	}
}

func (w *world) takeClaimName(claim string) {
	other := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.home(), Name: claim, UID: w.UID(), ResourceVersion: w.Version()}}
	other.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	w.held[other.UID] = "somebody"
	w.truth.claim = other
}

func (w *world) settle() {
	for range 12 {
		quiet := false
		for range 40 {
			w.see(4)
			p := w.reconcile(-1)
			if len(p.Actions)+len(p.Statuses)+len(p.Events) == 0 {
				quiet = true
				break
			}
			w.fills()
			w.gives()
		}
		if !quiet {
			w.Violated("the world comes to rest", "there is no end of writes")
		}
		w.fills()
		w.gives()
		w.Now = w.Now.Add(10 * time.Minute)
	}
	for range 4 { // the last events are observed, too
		w.see(4)
		w.reconcile(-1)
	}
	d := w.truth.disk
	if d == nil {
		return
	}
	w.settled(d)
	if d.DeletionTimestamp != nil && len(w.truth.machines) == 0 && w.truth.user == nil {
		w.Violated("a disk that nobody has can be deleted", "it is %s: %+v", d.Status.Phase, d.Status.Conditions)
	}
	if d.Status.Phase == "" {
		w.Violated("what is awaited is told", "there is no phase")
	}
	c := w.truth.claim
	fine := c != nil && c.Annotations[names.AnnotationMadeFor] == string(d.UID) && d.Status.Target != nil && d.Status.Target.PersistentVolumeClaimUID == c.UID && d.DeletionTimestamp == nil
	if fine && w.usable() && c.Annotations[names.AnnotationFilled] != "" && !d.Status.Phase.Usable() {
		w.Violated("a disk that has its content becomes ready", "it is %s: %+v", d.Status.Phase, d.Status.Conditions)
	}
}

func (w *world) downloads() {
	name := objects.DownloadName(w.claimName())
	switch what := w.Draw("download", 10); {
	case what < 3 && w.truth.disk != nil:
		d := w.truth.disk.DeepCopy()
		d.Annotations = map[string]string{names.AnnotationUploadRequest: d.Annotations[names.AnnotationUploadRequest], names.AnnotationDownloadRequest: choose(w, "request", "d1", "d2", "")}
		d.ResourceVersion, w.truth.disk = w.Version(), d
	case what < 7:
		w.gives()
	case what == 7 && w.truth.giver != nil:
		w.truth.giver = nil
	case what == 8:
		if w.truth.giverKey = nil; w.Draw("of somebody", 2) == 0 {
			w.truth.giverKey = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: w.UID(), ResourceVersion: w.Version()}, Data: aKey()}
		}
	case what == 9:
		w.truth.user = nil
		if w.Draw("user", 2) == 0 {
			w.truth.user = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "somebody"}}
		}
	}
	for range w.Draw("looks", 4) {
		w.see(4)
		w.reconcile(-1)
	}
}
