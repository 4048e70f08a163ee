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

// Snapshot is all that a decision about one disk depends on. A pointer that is nil means
// known to be absent. Nothing in it is changed.
type Snapshot struct {
	// Disk is the disk as it is stored, nil if it is an image.
	Disk *spec.VirtualDisk
	// Image is the image as it is stored, nil if it is a disk.
	Image *spec.VirtualImage
	// ClusterImage is the image of the cluster as it is stored, nil if it is none. Its
	// claim and its pods are in the namespace that the settings say.
	ClusterImage *spec.ClusterVirtualImage
	// Unreadable says why that has nothing but its metadata; empty if it has all.
	Unreadable string
	// Settings are the operator's.
	Settings objects.Settings
	// Claim is the claim that has the name [objects.ClaimOfDisk], or of an image
	// [objects.ClaimOfImage], and Pod the pod that has the name [objects.ImportPod],
	// whoever made them.
	Claim *corev1.PersistentVolumeClaim
	Pod   *corev1.Pod
	// Machines are the names of the machines that have the disk, or its claim, in their
	// manifest, or may have it: one that cannot be understood counts.
	Machines []string
	// Guests are the machines among them whose runner tells how large the disk is for its
	// guest.
	Guests []Guest
	// Users are further pods that have the claim and have not ended.
	Users []corev1.Pod
	// Source is the disk that this one is a copy of, or SourceImage the image, and
	// SourceClaim the claim of its name; nil if there is none, or it is no copy of one.
	// SourceUsers are pods that have that claim and have not ended, but for Pod; of an
	// image nobody asks.
	Source      *spec.VirtualDisk
	SourceImage *spec.VirtualImage
	SourceClaim *corev1.PersistentVolumeClaim
	SourceUsers []corev1.Pod
	// SourceClusterImage is the image of the cluster that it is a copy of, whose claim
	// SourceClaim is then; NoClusterImages says that the operator looks after none. Server
	// is the pod that serves it to this disk, and ServerKey the Secret with the key of
	// that, without the key itself; Key is the same of the disk's own.
	SourceClusterImage *spec.ClusterVirtualImage
	NoClusterImages    bool
	Server             *corev1.Pod
	ServerKey          *corev1.Secret
	Key                *corev1.Secret
	// VolumeSnapshot is the snapshot of a volume that it is a copy of, nil if there is
	// none, or it has its claim; SnapshotAccess is why nobody knows.
	VolumeSnapshot *VolumeSnapshot
	SnapshotAccess SnapshotAccess
	// Copiers are those who want to be served, if it is an image of the cluster, and
	// Servers the pods that serve it.
	Copiers []objects.Copier
	Servers []corev1.Pod
	// TransferKey is the Secret that has the name [objects.TransferKey], whoever made it.
	TransferKey *corev1.Secret
	// DownloadPod and DownloadKey are the pod and the Secret that have the name
	// [objects.DownloadName], whoever made them.
	DownloadPod *corev1.Pod
	DownloadKey *corev1.Secret
	// Progress is how far Pod is, as it said a moment ago; nil if nobody knows.
	Progress *runnerconfig.ImportProgress
	// Failures are writes that the API server refused.
	Failures []reconcile.Failure
	// Now is the time of the observation.
	Now time.Time
}

// Guest is how large a disk is for the guest of a machine.
type Guest struct {
	// Machine is its name.
	Machine string
	// Size is what the guest sees, and Message why that is not more.
	Size    resource.Quantity
	Message string
}

// VolumeSnapshot is what is known of the snapshot of a volume that a disk is to be made
// of.
type VolumeSnapshot struct {
	UID types.UID
	// Deleted says that it is being deleted, and Ready that its driver is done with it.
	Deleted, Ready bool
	// Error is what its driver says of why it is not.
	Error string
	// Driver is that of the VolumeSnapshotContent which is bound to it; empty if there is
	// none.
	Driver string
	// Size is what a volume needs that is restored from it, nil if nobody knows, and Mode
	// how the volume was used that it is one of; empty if nobody knows.
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
