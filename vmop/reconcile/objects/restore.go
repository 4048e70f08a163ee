package objects

import (
	"github.com/vmop/sdk/vmop/names"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Restored is [Filled.VolumeClaim] that is to be restored from a snapshot of a volume,
// which has the UID and was made by a driver.
func (f Filled) Restored(snapshot string, uid types.UID, driver string) *corev1.PersistentVolumeClaim {
	pvc := f.VolumeClaim()
	pvc.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new(names.SnapshotGroup), Kind: names.KindVolumeSnapshot, Name: snapshot}
	pvc.Annotations[names.AnnotationRestoreOf], pvc.Annotations[names.AnnotationSnapshotDriver] = string(uid), driver
	return pvc
}

// Provisioner is who was asked for the volume of a claim, which Kubernetes records on it;
// empty if nobody was, or not yet.
func Provisioner(claim *corev1.PersistentVolumeClaim) string {
	if claim == nil {
		return ""
	}
	for _, key := range names.AnnotationsProvisioner {
		if p := claim.Annotations[key]; p != "" {
			return p
		}
	}
	return ""
}
