package objects

import (
	"github.com/vmop/sdk/vmop/names"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Restored returns [Filled.VolumeClaim] as one restored from a volume snapshot with the UID,
// which was taken by a driver.
func (f Filled) Restored(snapshot string, uid types.UID, driver string) *corev1.PersistentVolumeClaim {
	pvc := f.VolumeClaim()
	pvc.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new(names.SnapshotGroup), Kind: names.KindVolumeSnapshot, Name: snapshot}
	pvc.Annotations[names.AnnotationRestoreOf], pvc.Annotations[names.AnnotationSnapshotDriver] = string(uid), driver
	return pvc
}

// Provisioner returns the provisioner of a claim's volume, which Kubernetes records on it; empty
// if there is none yet.
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
