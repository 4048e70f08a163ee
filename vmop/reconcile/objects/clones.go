package objects

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// cloning lists provisioners that clone a volume for a claim whose dataSource is another claim,
// by their vendors' documentation and containerized-data-importer's list. No API reports it: a
// driver without CLONE_VOLUME fails, and one that ignores dataSource creates an empty volume.
var cloning = []string{
	"rbd.csi.ceph.com", "*.rbd.csi.ceph.com", "cephfs.csi.ceph.com", "*.cephfs.csi.ceph.com",
	"csi-vxflexos.dellemc.com", "csi-isilon.dellemc.com", "csi-powermax.dellemc.com",
	"hspc.csi.hitachi.com", "csi.hpe.com", "spectrumscale.csi.ibm.com", "block.csi.ibm.com",
	"pxd.portworx.com", "infinibox-csi-driver", "kubesan.gitlab.io", "hostpath.csi.k8s.io",
}

func (s *Settings) clones(claim *corev1.PersistentVolumeClaim) bool {
	if s == nil || claim == nil {
		return false
	}
	patterns := cloning
	if s.CloningProvisioners != nil {
		patterns = s.CloningProvisioners
	}
	p := Provisioner(claim)
	return p != "" && matches(patterns, p)
}

// Clone returns [Filled.VolumeClaim] as a clone of the claim of a disk or image, and records the
// UID of that.
func (f Filled) Clone(source *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	pvc := f.VolumeClaim()
	if source == nil {
		return pvc
	}
	pvc.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: names.KindClaim, Name: source.Name}
	pvc.Annotations[names.AnnotationCloneOf] = source.Annotations[names.AnnotationMadeFor]
	return pvc
}

// CanClone reports whether the claim may be a clone of its source's claim, which has the given
// storage class: both need the same namespace, class and mode, and a provisioner that clones.
func (f Filled) CanClone(s *Settings, source *corev1.PersistentVolumeClaim, class *string) bool {
	if source == nil {
		return false
	}
	same := f.class == nil && class == nil || f.class != nil && class != nil && *f.class == *class
	return same && source.Namespace == f.namespace && isBlock(source) == f.Block() && s.clones(source)
}

// ofDisk reports whether the source is a disk, to which guests write.
func (f Filled) ofDisk() bool {
	return f.source != nil && f.source.ObjectRef != nil && f.source.ObjectRef.Kind == spec.KindDisk
}
