package disk

import (
	"slices"
	"strconv"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type decision struct {
	s *Snapshot
	subject
	next spec.VirtualDiskStatus
	plan reconcile.Plan
	// gone: the disk is released, and has no status any more.
	gone bool
}

func (d *decision) held() bool { return slices.Contains(d.disk.Finalizers, d.finalizer) }

// mine reports whether an object was created for this very disk, which only its annotation
// proves.
func (d *decision) mine(o metav1.Object) bool {
	return d.disk.UID != "" && o.GetAnnotations()[names.AnnotationMadeFor] == string(d.disk.UID)
}

func (d *decision) isFilled() bool {
	return d.s.Claim != nil && d.s.Claim.Annotations[names.AnnotationFilled] == string(d.disk.UID)
}

func needsFilling(disk *spec.VirtualDisk) bool {
	return disk.Spec.DataSource != nil || disk.Spec.VolumeMode() == corev1.PersistentVolumeFilesystem
}

const (
	// importDelay is the pause after a failed attempt to fill a disk. It doubles, up to five
	// minutes.
	importDelay = 10 * time.Second
	// progressDelay is how often the progress of a disk is polled.
	progressDelay = 10 * time.Second
	// sourceDelay is how often the source of a copy is polled.
	sourceDelay = 10 * time.Second
	// nameRetry is how often a foreign pod or Secret is polled that has a name which the disk
	// needs: it may have no label by which it would be watched.
	nameRetry = time.Minute
	// importGrace is the grace period of a pod that is not needed any more, in seconds.
	importGrace = 5
)

func (d *decision) namespace() string {
	if d.s.ClusterImage == nil {
		return ""
	}
	return d.s.Settings.ImageNamespace
}

func (d *decision) status() (next any, changed bool) {
	if d.image == nil {
		return d.next, !equality.Semantic.DeepEqual(d.next, d.disk.Status)
	}
	out := *d.image.DeepCopy()
	out.Phase, out.ObservedGeneration, out.Format = spec.ImagePhase(d.next.Phase), d.next.ObservedGeneration, d.next.Format
	out.Target, out.Import, out.Progress, out.Download, out.Conditions = d.next.Target, d.next.Import, d.next.Progress, d.next.Download, d.next.Conditions
	if d.next.Phase == spec.DiskReady && d.s.Claim != nil {
		out.SHA256 = d.s.Claim.Annotations[names.AnnotationImageDigest]
		for _, q := range []struct {
			of  **resource.Quantity
			key string
		}{{&out.Size, names.AnnotationImageSize}, {&out.StoredSize, names.AnnotationStoredSize}} {
			// An equal quantity in another notation is no reason to write.
			if is := marked(d.s.Claim, q.key); !is.IsZero() && (*q.of == nil || (*q.of).Cmp(is) != 0) {
				*q.of = &is
			}
		}
	}
	return out, !equality.Semantic.DeepEqual(out, *d.image)
}

func (d *decision) marks(got runnerconfig.Imported) map[string]string {
	out := map[string]string{names.AnnotationFilled: string(d.disk.UID)}
	if d.disk.Spec.VolumeMode() != corev1.PersistentVolumeBlock {
		out[names.AnnotationDiskFormat] = got.Format
	}
	if d.s.Claim.Annotations[names.AnnotationCloneOf] != "" {
		out[names.AnnotationCloned] = strconv.FormatBool(got.Cloned)
	}
	if d.image != nil {
		out[names.AnnotationImageSize] = strconv.FormatInt(max(got.Size, 0), 10)
		out[names.AnnotationStoredSize] = strconv.FormatInt(max(got.Stored, 0), 10)
	}
	if d.s.ClusterImage != nil {
		out[names.AnnotationImageDigest], out[names.AnnotationImageLength] = got.SHA256, strconv.FormatInt(got.Length, 10)
	}
	return out
}
