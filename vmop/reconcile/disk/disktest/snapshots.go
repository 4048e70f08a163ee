package disktest

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	theDriver     = "csi.test"
	byProvisioner = "volume.kubernetes.io/storage-provisioner"
)

func (w *world) madeOfSnapshot(d *spec.VirtualDisk) {
	if mode := choose(w, "mode", "", corev1.PersistentVolumeBlock); mode != "" {
		d.Spec.PersistentVolumeClaim.VolumeMode = &mode
	}
	d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindVolumeSnapshot, Name: "nightly"}}
	w.provisioner = choose(w, "provisioner", theDriver, theDriver, "forgetful", "")
}

func (w *world) snapshots() {
	w.truth.access = choose(w, "access", "", "", "", "", disk.SnapshotsUndefined, disk.SnapshotsForbidden)
	w.truth.snapshot = nil
	if w.Draw("snapshot", 6) > 0 {
		s := &disk.VolumeSnapshot{
			UID: w.UID(), Ready: w.Draw("ready", 3) > 0, Deleted: w.Draw("deleted", 6) == 0,
			Driver: choose(w, "driver", theDriver, theDriver, theDriver, "other", ""), Mode: choose(w, "of mode", "", corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock),
		}
		if size := choose(w, "restore size", "", "1Gi", "4Gi"); size != "" {
			s.Size = new(resource.MustParse(size))
		}
		w.truth.snapshot = s
	}
	w.Note("snapshot %+v, %s", w.truth.snapshot, w.truth.access)
}

func (w *world) mayRestore(c *corev1.PersistentVolumeClaim) {
	s, d, from := w.truth.snapshot, w.cache.disk, c.Spec.DataSource
	switch {
	case w.truth.access != "" || s == nil || !s.Ready || s.Deleted || s.Driver == "",
		s.Size != nil && s.Size.Cmp(d.Spec.PersistentVolumeClaim.Size) > 0,
		s.Mode != "" && s.Mode != d.Spec.VolumeMode(),
		from == nil || from.Kind != names.KindVolumeSnapshot || from.APIGroup == nil || *from.APIGroup != names.SnapshotGroup || from.Name != "nightly",
		c.Annotations[names.AnnotationRestoreOf] != string(s.UID) || c.Annotations[names.AnnotationSnapshotDriver] != s.Driver:
		w.Violated("a claim is made of a snapshot that it can be restored from", "claim %+v of %+v, %s", c, s, w.truth.access)
	}
}

// provisions creates the volume of a claim: a driver that knows the snapshot restores it.
func (w *world) provisions(c *corev1.PersistentVolumeClaim) {
	driver := c.Annotations[names.AnnotationSnapshotDriver]
	if !w.restores || driver == "" {
		return
	}
	if w.provisioner != "" {
		c.Annotations[byProvisioner] = w.provisioner
	}
	w.wellRestored[c.UID] = w.provisioner == driver
}
