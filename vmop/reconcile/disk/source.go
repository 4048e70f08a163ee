package disk

import (
	"slices"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// source reports whether the disk or image to copy can be read: it exists, and no pod writes to
// it. A disk that is being copied keeps machines that have it waiting, as does any other pod with
// their claim; images are read-only.
func (d *decision) source() bool {
	if d.disk.Spec.DataSource == nil || d.disk.Spec.DataSource.ObjectRef == nil {
		return true
	}
	ref := d.disk.Spec.DataSource.ObjectRef
	wait := func(reason, format string, args ...any) bool {
		d.plan.WakeAt(d.s.Now.Add(sourceDelay)) // other objects are not watched
		d.say(spec.DiskPending, metav1.ConditionFalse, reason, "%s %s, which it is a copy of, "+format, append([]any{ref.Kind, ref.Name}, args...)...)
		return false
	}
	if d.restored() {
		return d.snapshot(wait)
	}
	from, c := subjectOf(&Snapshot{Disk: d.s.Source, Image: d.s.SourceImage, ClusterImage: d.s.SourceClusterImage}), d.s.SourceClaim
	switch {
	case ref.Kind == spec.KindClusterImage && d.s.NoClusterImages:
		return wait(conditions.ReasonDiskSourceNotReady, "is none of this operator's, which looks after single namespaces")
	case from.object == nil || from.kind != ref.Kind:
		return wait(conditions.ReasonDiskSourceNotReady, "does not exist: create it, or correct the name in another %s", d.noun)
	case from.disk.DeletionTimestamp != nil:
		return wait(conditions.ReasonDiskSourceNotReady, "is being deleted")
	case from.disk.UID == "" || c == nil || c.Annotations[names.AnnotationMadeFor] != string(from.disk.UID) || c.DeletionTimestamp != nil ||
		from.disk.Status.Phase != spec.DiskReady && from.disk.Status.Phase != spec.DiskResizing ||
		c.Status.Phase != corev1.ClaimBound || needsFilling(from.disk) && c.Annotations[names.AnnotationFilled] != string(from.disk.UID):
		return wait(conditions.ReasonDiskSourceNotReady, "is not ready; see kubectl describe %s %s", from.short, from.disk.Name)
	case from.image == nil && len(d.sourceWriters()) > 0:
		return wait(conditions.ReasonDisksInUse, "is used by pod %s: stop that machine until the copy is there", few(d.sourceWriters()))
	case d.image != nil && ref.Kind != spec.KindClusterImage:
		return true // the pod determines how much of the volume to copy
	}
	has := from.disk.Spec.PersistentVolumeClaim.Size
	if from.image != nil {
		has = marked(c, names.AnnotationImageSize)
	}
	if d.image == nil && spec.CompareQuantities(d.disk.Spec.PersistentVolumeClaim.Size, has) < 0 {
		d.fail(conditions.ReasonDiskImportFailed, "%s %s, which it is a copy of, has %s, and no disk is made smaller: ask for as much", ref.Kind, ref.Name, has.String())
		return false
	}
	return ref.Kind != spec.KindClusterImage || d.server(ref.Name, c, wait)
}

// CopiesDisk returns the claim of the VirtualDisk that a plan begins to copy, or "". Before executing
// such a plan, make sure that the snapshot's SourceUsers are complete, including those that no watch
// shows, and that no machine with the claim gets a pod at the same time; and decide anew with them.
func CopiesDisk(s Snapshot, plan reconcile.Plan) string {
	d := subjectOf(&s)
	if d.object == nil || d.disk.Spec.DataSource == nil || d.disk.Spec.DataSource.ObjectRef == nil || d.disk.Spec.DataSource.ObjectRef.Kind != spec.KindDisk {
		return ""
	}
	if !slices.ContainsFunc(plan.Actions, func(a reconcile.Action) bool {
		t := a.Target()
		return t.Verb == "create" && t.Kind == names.KindPod && t.Name == d.podName
	}) {
		return ""
	}
	return objects.ClaimOfDisk(d.disk.Spec.DataSource.ObjectRef.Name)
}

// torn reports whether a pod may write to the source during the copy. It keeps a copy from being
// trusted whose pod was created at the same moment as a machine's.
func (d *decision) torn() bool {
	return d.disk.Spec.DataSource != nil && d.disk.Spec.DataSource.ObjectRef != nil && d.disk.Spec.DataSource.ObjectRef.Kind == spec.KindDisk &&
		len(d.sourceWriters()) > 0
}

// sourceWriters returns the pods that may write to the source: all that have not ended, except
// those that copy it or serve it for download.
func (d *decision) sourceWriters() []string {
	return unfinished(slices.DeleteFunc(slices.Clone(d.s.SourceUsers), func(p corev1.Pod) bool {
		return objects.OnlyCopies(&p, objects.ClaimOfDisk(d.disk.Spec.DataSource.ObjectRef.Name))
	}))
}
