package disktest

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
)

type mutant = promises.Mutant[disk.Snapshot]

// own has objects that a mutant may change.
func own(s disk.Snapshot) disk.Snapshot {
	s.Disk, s.Image, s.ClusterImage, s.Claim, s.Pod = s.Disk.DeepCopy(), s.Image.DeepCopy(), s.ClusterImage.DeepCopy(), s.Claim.DeepCopy(), s.Pod.DeepCopy()
	if s.VolumeSnapshot != nil {
		snapshot := *s.VolumeSnapshot
		s.VolumeSnapshot = &snapshot
	}
	s.TransferKey, s.DownloadPod, s.DownloadKey = s.TransferKey.DeepCopy(), s.DownloadPod.DeepCopy(), s.DownloadKey.DeepCopy()
	return s
}

// fillsAnyhow makes the pod whatever else is to be done.
func fillsAnyhow(when func(*disk.Snapshot) bool) func(*disk.Snapshot, *reconcile.Plan) {
	return promises.Adds(func(s *disk.Snapshot) reconcile.Action {
		if s.Pod != nil || !when(s) {
			return nil
		}
		return reconcile.Create{Object: objects.FilledDisk(s.Disk).ImportJob(s.Settings, s.SourceClaim)}
	})
}

func made(s *disk.Snapshot) bool {
	return s.Claim != nil && s.Claim.Annotations[names.AnnotationMadeFor] == string(s.Disk.UID)
}

func noted(s *disk.Snapshot) bool {
	return made(s) && s.Disk.Status.Target != nil && s.Disk.Status.Target.PersistentVolumeClaimUID == s.Claim.UID
}

func mutants() []mutant {
	return []mutant{
		{
			Fault: "a plan depends on how often it is asked for", Promise: "equal snapshots give equal plans",
			After: func() func(*disk.Snapshot, *reconcile.Plan) {
				var asked atomic.Int64
				return func(s *disk.Snapshot, p *reconcile.Plan) {
					p.Wake = s.Now.Add(time.Duration(asked.Add(1)) * time.Hour)
				}
			}(),
		},
		{
			Fault: "the snapshot is changed", Promise: "a snapshot is not changed",
			After: func(s *disk.Snapshot, _ *reconcile.Plan) { s.Disk.Labels = map[string]string{"seen": "yes"} },
		},
		{
			Fault: "a claim goes with its disk at once", Promise: "no claim is deleted, and nothing is written over",
			After: promises.Adds(func(s *disk.Snapshot) reconcile.Action {
				if s.Claim == nil {
					return nil
				}
				return reconcile.DeleteClaim{Name: s.Claim.Name, UID: s.Claim.UID, ResourceVersion: s.Claim.ResourceVersion}
			}),
		},
		{
			Fault: "a claim follows its disk in both directions", Promise: "no claim shrinks",
			After: promises.Adds(func(s *disk.Snapshot) reconcile.Action {
				if !noted(s) {
					return nil
				}
				if q := s.Disk.Spec.PersistentVolumeClaim.Size; q.Cmp(s.Claim.Spec.Resources.Requests[corev1.ResourceStorage]) < 0 {
					return reconcile.UpdateClaim{Name: s.Claim.Name, UID: s.Claim.UID, ResourceVersion: s.Claim.ResourceVersion, Storage: &q}
				}
				return nil
			}),
		},
		{
			Fault: "a condition says all that there is to say", Promise: "a message is one line",
			After: promises.Ramble[disk.Snapshot],
		},
		{
			Fault: "no condition is told", Promise: "what is awaited is told",
			After: func(_ *disk.Snapshot, p *reconcile.Plan) {
				for i := range p.Statuses {
					delete(p.Statuses[i].Status, "conditions")
				}
			},
		},
		{
			Fault: "what is in the way is said to go", Promise: "what is in the way is looked for again",
			After: func(_ *disk.Snapshot, p *reconcile.Plan) { p.Wake = time.Time{} },
		},
		{
			Fault: "a claim is the disk", Promise: "a disk that is ready has its content",
			Before: func(s *disk.Snapshot) {
				if made(s) {
					s.Claim.Annotations[names.AnnotationFilled] = string(s.Disk.UID)
				}
			},
		},
		{
			Fault: "a volume is the disk of its guest", Promise: "a disk has not grown before its guest has it",
			Before: func(s *disk.Snapshot) { s.Guests = nil },
		},
		{
			Fault: "what was told before is not looked at", Promise: "progress does not go back",
			Before: func(s *disk.Snapshot) { s.Disk.Status.Progress = "" },
		},
		{
			Fault: "a pod that has read everything is done", Promise: "what is not there is not told to be whole",
			After: func(s *disk.Snapshot, p *reconcile.Plan) {
				for i := range p.Statuses {
					if s.Progress != nil && s.Progress.Done == s.Progress.Total {
						p.Statuses[i].Status["progress"] = "100%"
					}
				}
			},
		},
		{
			Fault: "machines are not looked at", Promise: "a disk that a machine has is kept",
			Before: func(s *disk.Snapshot) { s.Machines = nil },
		},
		{
			Fault: "the pod is not looked at when the disk goes", Promise: "nothing is left of a disk",
			Before: func(s *disk.Snapshot) {
				if s.Disk.DeletionTimestamp != nil {
					s.Pod = nil
				}
			},
		},
		{
			Fault: "the status does not know the claim", Promise: "a claim that is gone is not made anew",
			Before: func(s *disk.Snapshot) { s.Disk.Status.Target = nil },
		},
		{
			Fault: "any pod is the disk's", Promise: "a pod of somebody else is left alone",
			Before: func(s *disk.Snapshot) {
				if s.Pod != nil {
					s.Pod.Annotations = map[string]string{names.AnnotationMadeFor: string(s.Disk.UID)}
				}
			},
		},
		{
			Fault: "the end of a pod is the disk", Promise: "what is not filled is not called so",
			Before: func(s *disk.Snapshot) {
				if s.Pod != nil && s.Pod.Status.Phase == corev1.PodFailed {
					s.Pod.Status.Phase = corev1.PodSucceeded
					s.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"format":"raw"}`}}}}
				}
			},
		},
		{
			Fault: "any claim of the name will do", Promise: "nothing is put into a claim of somebody else",
			After: fillsAnyhow(func(s *disk.Snapshot) bool { return s.Claim != nil && !made(s) }),
		},
		{
			Fault: "the claim is filled as soon as it is there", Promise: "nothing is put into a claim before that is noted",
			After: fillsAnyhow(func(s *disk.Snapshot) bool { return made(s) && s.Disk.Status.Target == nil }),
		},
		{
			Fault: "nobody sees that it is filled", Promise: "a disk is filled once",
			After: fillsAnyhow(func(s *disk.Snapshot) bool { return noted(s) && s.Claim.Annotations[names.AnnotationFilled] != "" }),
		},
		{
			Fault: "pods of others are not looked at", Promise: "there is one writer",
			Before: func(s *disk.Snapshot) { s.Users = nil },
		},
		{
			Fault: "everything is allowed", Promise: "what is not allowed is not fetched",
			Before: func(s *disk.Snapshot) { s.Settings.Allowed.Everything = true },
		},
		{
			Fault: "no failure is final", Promise: "what fails for good is not tried again",
			After: fillsAnyhow(func(s *disk.Snapshot) bool {
				return noted(s) && s.Claim.Annotations[names.AnnotationFilled] == "" && s.Disk.DeletionTimestamp == nil && s.Disk.Status.Import != nil && s.Disk.Status.Import.Final
			}),
		},
		{
			Fault: "attempts follow at once", Promise: "attempts have pauses",
			Before: func(s *disk.Snapshot) { s.Now = s.Now.Add(time.Hour) },
		},
		{
			Fault: "requests for uploads are not remembered", Promise: "an upload is awaited once for who asks for it",
			Before: func(s *disk.Snapshot) {
				if s.Disk.Status.Import != nil {
					s.Disk.Status.Import.Request = ""
				}
			},
		},
		{
			Fault: "any Secret of the name has the key", Promise: "an upload has a key of its own",
			Before: func(s *disk.Snapshot) {
				if s.TransferKey != nil {
					s.TransferKey.Annotations = map[string]string{names.AnnotationMadeFor: string(s.Disk.UID)}
				}
			},
		},
		{
			Fault: "a finalizer is written without need", Promise: "the world comes to rest",
			After: promises.Adds(func(s *disk.Snapshot) reconcile.Action {
				if len(s.Disk.Finalizers) == 0 {
					return nil
				}
				return reconcile.SetFinalizers{Kind: names.KindDisk, Name: s.Disk.Name, UID: s.Disk.UID, ResourceVersion: s.Disk.ResourceVersion, Finalizers: s.Disk.Finalizers}
			}),
		},
		{
			Fault: "nothing is let go", Promise: "a disk that nobody has can be deleted",
			After: func(_ *disk.Snapshot, p *reconcile.Plan) {
				p.Actions = slices.DeleteFunc(p.Actions, func(a reconcile.Action) bool {
					f, is := a.(reconcile.SetFinalizers)
					return is && f.Releases
				})
			},
		},
		{
			Fault: "a disk with content is not ready", Promise: "a disk that has its content becomes ready",
			Before: func(s *disk.Snapshot) {
				if s.Claim != nil && s.Claim.Annotations[names.AnnotationFilled] != "" {
					s.Unreadable = "what is filled"
				}
			},
		},
	}
}

// imageMutants are about images.
func imageMutants() []mutant {
	return []mutant{
		{
			Fault: "pods that have the image do not count", Promise: "a disk that a pod has is kept",
			Before: func(s *disk.Snapshot) { s.Users = nil },
		},
		{
			Fault: "an image is a disk", Promise: "an image is written as one",
			After: func(_ *disk.Snapshot, p *reconcile.Plan) {
				for i, a := range p.Actions {
					if f, is := a.(reconcile.SetFinalizers); is {
						f.Kind = names.KindDisk
						p.Actions[i] = f
					}
				}
			},
		},
		{
			Fault: "what is in an image is put there again", Promise: "the claim of an image stays as it was made",
			After: promises.Adds(func(s *disk.Snapshot) reconcile.Action {
				if s.Claim == nil || s.Claim.Annotations[names.AnnotationFilled] == "" {
					return nil
				}
				return reconcile.UpdateClaim{Name: s.Claim.Name, UID: s.Claim.UID, ResourceVersion: s.Claim.ResourceVersion, Annotations: map[string]string{names.AnnotationDiskFormat: "qcow2"}}
			}),
		},
		{
			Fault: "an image is filled as often as it is looked at", Promise: "a disk is filled once",
			Before: func(s *disk.Snapshot) {
				if s.Claim != nil {
					delete(s.Claim.Annotations, names.AnnotationFilled)
				}
			},
		},
	}
}

// clusterImageMutants are about images of the cluster.
func clusterImageMutants() []mutant {
	return []mutant{{
		Fault: "an image of the cluster is made where the first one was asked for", Promise: "what is made for it is where it belongs",
		Before: func(s *disk.Snapshot) { s.Settings.ImageNamespace = "lab" },
	}}
}

// kind is what mutants are tried with, in worlds of a kind.
func kind(k worldKind, all ...mutant) *promises.Kind[disk.Snapshot] {
	return &promises.Kind[disk.Snapshot]{
		Decide: disk.Decide, Own: own, Mutants: all,
		Live: func(_ *testing.T, draw func(string, int) int, decide func(disk.Snapshot) reconcile.Plan) *promises.Violation {
			w := k.world(decide)
			w.Draw = draw
			return w.life()
		},
	}
}

// snapshotMutants are about disks that are made of snapshots.
func snapshotMutants() []mutant {
	return []mutant{
		{
			Fault: "a snapshot is ready when it is there", Promise: "a claim is made of a snapshot that it can be restored from",
			Before: func(s *disk.Snapshot) {
				if s.VolumeSnapshot != nil {
					s.VolumeSnapshot.Ready = true
				}
			},
		},
		{
			Fault: "the size of a snapshot is not looked at", Promise: "a claim is made of a snapshot that it can be restored from",
			Before: func(s *disk.Snapshot) {
				if s.VolumeSnapshot != nil {
					s.VolumeSnapshot.Size = nil
				}
			},
		},
		{
			Fault: "whoever made the volume has restored it", Promise: "what no driver has restored is no disk",
			Before: func(s *disk.Snapshot) {
				if s.Claim != nil && s.Claim.Annotations[names.AnnotationSnapshotDriver] != "" {
					s.Claim.Annotations[names.AnnotationsProvisioner[0]] = s.Claim.Annotations[names.AnnotationSnapshotDriver]
				}
			},
		},
	}
}

// TestPromisesAreNoticed and those of other kinds show that the promises would be noticed to be broken.
func TestPromisesAreNoticed(t *testing.T) {
	kind(disks, append(mutants(), downloadMutants()...)...).Break(t)
}

func TestPromisesOfImagesAreNoticed(t *testing.T) { kind(images, imageMutants()...).Break(t) }

func TestPromisesOfSnapshotsAreNoticed(t *testing.T) {
	kind(restoredDisks, snapshotMutants()...).Break(t)
}

func TestPromisesOfClusterImagesAreNoticed(t *testing.T) {
	kind(clusterImages, clusterImageMutants()...).Break(t)
}

// TestEveryPromiseHasAMutant finds the promises in the source of the world.
func TestEveryPromiseHasAMutant(t *testing.T) {
	kind(disks, slices.Concat(mutants(), downloadMutants(), imageMutants(), clusterImageMutants(), snapshotMutants())...).Registered(t)
}
