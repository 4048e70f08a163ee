package disk

import (
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is all that a decision about one disk depends on. A nil pointer means known to be
// absent. Nothing in it is changed.
type Snapshot struct {
	// Disk is the disk as it is stored, nil if it is an image.
	Disk *spec.VirtualDisk
	// Image is the image as it is stored, nil if it is a disk.
	Image *spec.VirtualImage
	// ClusterImage is the image of the cluster as it is stored, or nil. Its claim and its pods
	// are in the namespace of the settings.
	ClusterImage *spec.ClusterVirtualImage
	// Unreadable is why that has only its metadata; empty if it has all.
	Unreadable string
	// Settings are the operator's.
	Settings objects.Settings
	// Claim is the claim with the name [objects.ClaimOfDisk], or of an image
	// [objects.ClaimOfImage], and Pod the pod with the name [objects.ImportPod], whoever created
	// them.
	Claim *corev1.PersistentVolumeClaim
	Pod   *corev1.Pod
	// Machines are the names of the machines that have the disk, or its claim, in their manifest,
	// or may have it: one that cannot be decoded counts.
	Machines []string
	// Guests are the machines among them whose runner reports the size of the disk in its guest.
	Guests []Guest
	// Users are further pods that have the claim and have not ended.
	Users []corev1.Pod
	// Source is the disk that this one is a copy of, or SourceImage the image, and SourceClaim
	// the claim of its name; nil if there is none, or it is not a copy. SourceUsers are pods
	// other than Pod that have that claim and have not ended; not needed for an image.
	Source      *spec.VirtualDisk
	SourceImage *spec.VirtualImage
	SourceClaim *corev1.PersistentVolumeClaim
	SourceUsers []corev1.Pod
	// SourceClusterImage is the image of the cluster that it is a copy of, whose claim
	// SourceClaim is then; NoClusterImages says that the operator manages none. Server is the pod
	// that serves it to this disk, and ServerKey the Secret with that pod's key, without the key
	// itself; Key is the disk's own.
	SourceClusterImage *spec.ClusterVirtualImage
	NoClusterImages    bool
	Server             *corev1.Pod
	ServerKey          *corev1.Secret
	Key                *corev1.Secret
	// VolumeSnapshot is the volume snapshot that it is made of, nil if there is none, or it has
	// its claim; SnapshotAccess is why it is not known.
	VolumeSnapshot *VolumeSnapshot
	SnapshotAccess SnapshotAccess
	// Copiers are those to serve, if it is an image of the cluster, and Servers the pods that
	// serve it.
	Copiers []objects.Copier
	Servers []corev1.Pod
	// TransferKey is the Secret with the name [objects.TransferKey], whoever created it.
	TransferKey *corev1.Secret
	// DownloadPod and DownloadKey are the pod and the Secret with the name
	// [objects.DownloadName], whoever created them.
	DownloadPod *corev1.Pod
	DownloadKey *corev1.Secret
	// Progress is Pod's progress as reported recently; nil if not known.
	Progress *runnerconfig.ImportProgress
	// Failures are writes that the API server refused.
	Failures []reconcile.Failure
	// Now is the time of the observation.
	Now time.Time
}

// Guest is the size of a disk in the guest of a machine.
type Guest struct {
	// Machine is its name.
	Machine string
	// Size is what the guest sees, and Message why that is not more.
	Size    resource.Quantity
	Message string
}

// VolumeSnapshot is what is known of the volume snapshot that a disk is to be made of.
type VolumeSnapshot struct {
	UID types.UID
	// Deleted says that it is being deleted, and Ready that its driver has completed it.
	Deleted, Ready bool
	// Error is its driver's reason why it is not ready.
	Error string
	// Driver is that of the VolumeSnapshotContent bound to it; empty if there is none.
	Driver string
	// Size is the size of a volume restored from it, nil if unknown, and Mode the mode of the
	// original volume; empty if unknown.
	Size *resource.Quantity
	Mode corev1.PersistentVolumeMode
}

// SnapshotAccess is why nothing is known of a snapshot.
type SnapshotAccess string

// The reasons. Without one, the snapshot is known, or known to be absent.
const (
	// SnapshotsUndefined: the cluster has no definitions of them.
	SnapshotsUndefined SnapshotAccess = "Undefined"
	// SnapshotsForbidden: the operator may not read them.
	SnapshotsForbidden SnapshotAccess = "Forbidden"
)
