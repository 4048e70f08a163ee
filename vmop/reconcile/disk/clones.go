package disk

import (
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// cloneDeadline is how long a claim that should be a clone may be without a volume: a driver that
// cannot clone is reported only by events, which cannot be trusted.
const cloneDeadline = 10 * time.Minute

func (d *decision) cloneRefused() string {
	if im := d.disk.Status.Import; im != nil {
		return string(im.CloneRefused)
	}
	return ""
}

// newClaim creates the claim: a clone of the source's if possible, or one restored from a volume
// snapshot.
func (d *decision) newClaim() {
	c := d.filled.VolumeClaim()
	if s := d.disk.Spec.DataSource; s != nil && s.ObjectRef != nil && d.cloneRefused() == "" {
		// Whether it can be cloned is only known once the source exists.
		if !d.source() {
			return
		}
		if name := snapshotOf(s); name != "" {
			c = d.filled.Restored(name, d.s.VolumeSnapshot.UID, d.s.VolumeSnapshot.Driver)
		}
		// The claim of an image of the cluster is in another namespace.
		if ClusterImageOf(s) == "" && !d.restored() && d.filled.CanClone(&d.s.Settings, d.s.SourceClaim, d.sourceClass()) {
			c = d.filled.Clone(d.s.SourceClaim)
		}
	}
	if d.do(reconcile.Create{Object: c}) {
		d.wait(conditions.ReasonDiskProvisioning, "claim %s is being made", d.claimName)
	}
}

func (d *decision) sourceClass() *string {
	return subjectOf(&Snapshot{Disk: d.s.Source, Image: d.s.SourceImage}).disk.Spec.PersistentVolumeClaim.StorageClassName
}

// lateClone gives up a clone without a volume in time: its claim holds nothing, and is replaced
// by a copy. It reports whether it does. That is written before the claim is deleted, and the
// deletion is bound to the version without a volume.
func (d *decision) lateClone() bool {
	c := d.s.Claim
	if c.Annotations[names.AnnotationCloneOf] == "" || d.isFilled() || c.Status.Phase != "" && c.Status.Phase != corev1.ClaimPending {
		return false
	}
	late := c.CreationTimestamp.Add(cloneDeadline)
	if d.s.Now.Before(late) {
		d.plan.WakeAt(late)
		return false
	}
	const text = "claim %s, to be a clone of %s %s, has got no volume within %v; "
	ref := d.disk.Spec.DataSource.ObjectRef
	say := func(what string) {
		d.wait(conditions.ReasonDiskProvisioning, text+what, c.Name, ref.Kind, ref.Name, cloneDeadline)
	}
	say("a copy takes its place")
	switch p := d.s.Pod; {
	case d.cloneRefused() != string(c.UID):
		im := spec.VirtualDiskImport{}
		if d.disk.Status.Import != nil {
			im = *d.disk.Status.Import
		}
		im.CloneRefused = c.UID
		d.next.Import = &im
		d.plan.WakeAt(d.s.Now.Add(time.Second))
	case p != nil && d.mine(p):
		d.end(p)
	case len(d.pods()) > 0:
		say("a copy takes its place when pod " + few(d.pods()) + " is gone, which uses it")
	default:
		if !d.do(reconcile.DeleteClaim{Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion}) {
			say("it is empty: with kubectl delete pvc %[1]s a copy takes its place")
		}
	}
	return true
}
