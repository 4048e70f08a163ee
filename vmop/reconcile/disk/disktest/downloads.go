package disktest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func givenBy(key *corev1.Secret, p *corev1.Pod) bool {
	return key != nil && p != nil && len(key.OwnerReferences) == 1 && key.OwnerReferences[0].UID == p.UID
}

func (w *world) writes(s *state) bool { return !w.image && s.user != nil }

func (w *world) mayGive(p *corev1.Pod) {
	d, c := w.cache.disk, w.cache.claim
	request, noted := objects.DownloadRequest(d), d.Status.Download
	switch {
	case c == nil || c.Annotations[names.AnnotationMadeFor] != string(d.UID) || w.needsFilling(d) && c.Annotations[names.AnnotationFilled] != string(d.UID):
		w.Violated("nothing is given that is not there", "%+v", c)
	case request == "" || objects.DownloadRequest(p) != request || noted == nil || noted.Request != request || noted.Phase.Final():
		w.Violated("a download is given once for who asks for it", "the request is %q: %+v", request, noted)
	case w.writes(&w.cache):
		w.Violated("nobody reads beside a writer", "pod %s has the disk", w.cache.user.Name)
	case !slices.Equal(objects.PodClaims(p), []string{c.Name}) || slices.ContainsFunc(p.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return !m.ReadOnly }):
		w.Violated("a download only reads", "%+v", p.Spec)
	case d.DeletionTimestamp != nil:
		w.Violated("nothing is left of a disk", "a pod is made for one that is being deleted")
	}
}

func (w *world) needsFilling(d *spec.VirtualDisk) bool {
	return d.Spec.DataSource != nil || d.Spec.VolumeMode() == corev1.PersistentVolumeFilesystem
}

// mayUnlock verifies the creation of the pod's key, without which it does not start.
func (w *world) mayUnlock(key *corev1.Secret) {
	noted := w.cache.disk.Status.Download
	switch {
	case !givenBy(key, w.cache.giver) || noted == nil || noted.PodUID != w.cache.giver.UID:
		w.Violated("a download has a key of its own", "%+v: %+v", key.OwnerReferences, noted)
	case w.writes(&w.cache):
		w.Violated("nobody reads beside a writer", "pod %s has the disk", w.cache.user.Name)
	}
}

func (w *world) told(plan reconcile.Plan) {
	phase := ""
	if d := w.cache.disk.Status.Download; d != nil {
		phase = string(d.Phase)
	}
	for _, st := range plan.Statuses {
		d, _ := st.Status["download"].(map[string]any)
		phase, _ = d["phase"].(string)
	}
	if phase == string(spec.DownloadReady) && w.cache.disk.DeletionTimestamp == nil && !givenBy(w.cache.giverKey, w.cache.giver) {
		w.Violated("a download has a key of its own", "it is told to be given, and there is %+v", w.cache.giverKey)
	}
}

// gives advances the pod that serves a download, and the garbage collector.
func (w *world) gives() {
	p := w.truth.giver
	switch {
	case p == nil || len(p.OwnerReferences) == 0 || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
	case p.DeletionTimestamp != nil:
		w.truth.giver = nil
	case p.Status.Phase == "" && !givenBy(w.truth.giverKey, p):
	default:
		p = p.DeepCopy()
		p.ResourceVersion = w.Version()
		switch what := w.Draw("the pod that gives", 4); {
		case p.Status.Phase == "":
			p.Status.Phase = corev1.PodRunning
		case what == 0:
			p.Status.Phase = corev1.PodFailed
		case what == 1:
			p.Status.Phase = corev1.PodSucceeded
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(runnerconfig.Imported{Format: "raw", Size: 1}.Encode())}}}}
		}
		w.truth.giver = p
		w.Note("the pod that gives: %s", p.Status.Phase)
	}
	if k := w.truth.giverKey; k != nil && len(k.OwnerReferences) > 0 && !givenBy(k, w.truth.giver) {
		w.truth.giverKey = nil
	}
}

func (w *world) settled(d *spec.VirtualDisk) {
	g := w.truth.giver
	if w.writes(&w.truth) && g != nil && g.Status.Phase == corev1.PodRunning {
		w.Violated("nobody reads beside a writer", "pod %s gives a download, and pod %s has the disk", g.Name, w.truth.user.Name)
	}
	request, noted := objects.DownloadRequest(d), d.Status.Download
	if !w.cluster && d.DeletionTimestamp == nil && request != "" && g == nil && (noted == nil || noted.Request != request || !noted.Phase.Final()) {
		w.Violated("who asks for a download is answered", "%q: %+v", request, noted)
	}
}
