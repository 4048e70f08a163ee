package disk

import (
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// A disk made of a volume snapshot has a claim whose dataSource is that snapshot. No API reports
// whether that is honoured: a provisioner without support creates a volume that is empty, or has
// old content. So the driver of the snapshot is recorded on the claim, and compared with the
// volume's provisioner; and the pod verifies the content.

func snapshotOf(source *spec.VirtualDiskSource) string {
	if source == nil || source.ObjectRef == nil || source.ObjectRef.Kind != spec.KindVolumeSnapshot {
		return ""
	}
	return source.ObjectRef.Name
}

func (d *decision) restored() bool { return snapshotOf(d.disk.Spec.DataSource) != "" }

// snapshot reports whether a claim may be created from the snapshot now.
func (d *decision) snapshot(wait func(reason, format string, args ...any) bool) bool {
	s, name := d.s.VolumeSnapshot, snapshotOf(d.disk.Spec.DataSource)
	refuse := func(format string, args ...any) bool {
		d.plan.WakeAt(d.s.Now.Add(sourceDelay)) // another snapshot may take its name
		d.fail(conditions.ReasonDiskSnapshotRefused, "VolumeSnapshot %s, which it is a copy of, "+format, append([]any{name}, args...)...)
		return false
	}
	const notReady = conditions.ReasonDiskSourceNotReady
	switch {
	case d.s.SnapshotAccess == SnapshotsUndefined:
		return wait(notReady, "cannot be there: the cluster has no definitions of snapshots (%s/%s), which its administrator installs", names.SnapshotGroup, names.SnapshotVersion)
	case d.s.SnapshotAccess != "":
		return wait(notReady, "may not be read by the operator, which needs the role vmop-operator-snapshots: bind it as deploy/components/read-snapshots does")
	case s == nil:
		return wait(notReady, "does not exist: create it, or correct the name in another %s", d.noun)
	case s.Deleted:
		return wait(notReady, "is being deleted")
	case !s.Ready && s.Error != "":
		return wait(notReady, "is not ready: %s; see kubectl describe volumesnapshot %s", spec.BoundedMessage(s.Error), name)
	case !s.Ready || s.Driver == "" || s.UID == "":
		return wait(notReady, "is not ready; see kubectl describe volumesnapshot %s", name)
	case s.Mode != "" && s.Mode != d.disk.Spec.VolumeMode():
		return refuse("is one of a volume with volumeMode %s: make another %s with that", s.Mode, d.noun)
	case s.Size != nil && spec.CompareQuantities(d.disk.Spec.PersistentVolumeClaim.Size, *s.Size) < 0:
		return refuse("needs a volume of %s, and this %s asks for %s: ask for as much", s.Size.String(), d.noun, d.disk.Spec.PersistentVolumeClaim.Size.String())
	}
	return true
}

// restores reports whether the claim's provisioner is the snapshot's driver, or not yet known. A
// volume of any other holds nothing of the snapshot.
func (d *decision) restores() bool {
	c, name := d.s.Claim, snapshotOf(d.disk.Spec.DataSource)
	driver, asked := c.Annotations[names.AnnotationSnapshotDriver], objects.Provisioner(c)
	switch {
	case driver == "" || c.Annotations[names.AnnotationRestoreOf] == "":
		d.fail(conditions.ReasonDiskSnapshotRefused, "claim %s does not say which driver made VolumeSnapshot %s, which it is a copy of: make another %s, and delete this one", c.Name, name, d.noun)
	case asked != "" && asked != driver:
		d.fail(conditions.ReasonDiskSnapshotRefused,
			"VolumeSnapshot %s is of driver %s, and claim %s asks %s, which cannot restore it: make another %s with a storage class that can",
			name, driver, c.Name, asked, d.noun)
	default:
		return true
	}
	return false
}

// unasked reports whether no provisioner is known: a volume that existed before was not restored.
func (d *decision) unasked() bool {
	if !d.restored() || objects.Provisioner(d.s.Claim) != "" {
		return false
	}
	d.plan.WakeAt(d.s.Now.Add(10 * time.Second)) // a cache may show it later
	d.wait(conditions.ReasonDiskProvisioning,
		"claim %s does not say who has made its volume: if that stays so, it was there before. Make another %s with a storageClassName of %s, and delete this one",
		d.s.Claim.Name, d.noun, d.s.Claim.Annotations[names.AnnotationSnapshotDriver])
	return true
}
